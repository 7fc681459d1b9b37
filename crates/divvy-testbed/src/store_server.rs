//! The server of a store that the members of a cluster share.

use std::path::Path;

use crate::cluster_kind::ClusterKind;
use crate::nats::NatsServer;
use crate::nats_options::NatsOptions;
use crate::program::{NatsVersion, RedisFlavour};
use crate::redis::RedisServer;
use crate::redis_options::RedisOptions;
use crate::server::Server;

/// A server of whichever kind, which ends with this value, or a file that needs none.
#[derive(Debug)]
pub enum StoreServer {
    /// Members open it themselves.
    File,
    /// See [`RedisServer`].
    Redis(RedisServer),
    /// See [`NatsServer`].
    Nats(NatsServer),
}

impl StoreServer {
    /// Starts what a cluster of this kind needs.
    ///
    /// # Panics
    ///
    /// When the server is missing or does not start.
    pub async fn start(kind: ClusterKind) -> Self {
        match kind {
            ClusterKind::LeasesInFile | ClusterKind::LedByFile => Self::File,
            ClusterKind::LeasesInRedis | ClusterKind::LedByRedis => {
                let options = RedisOptions::new();
                Self::Redis(RedisServer::start(RedisFlavour::Redis7, options).await)
            }
            ClusterKind::LedByNats => {
                let options = NatsOptions::new();
                Self::Nats(NatsServer::start(NatsVersion::Newest, options).await)
            }
        }
    }

    /// The store that members are given; where it is a file, this one.
    pub fn address(&self, file: &Path) -> String {
        match self {
            Self::File => format!("file:{}", file.display()),
            Self::Redis(server) => server.url(),
            Self::Nats(server) => server.url(),
        }
    }

    /// The server, to do something to it.
    ///
    /// # Panics
    ///
    /// When the store is a file.
    pub fn server(&mut self) -> &mut Server {
        match self {
            Self::File => panic!("a file has no server"),
            Self::Redis(server) => server,
            Self::Nats(server) => server,
        }
    }
}
