//! A Redis or Valkey server.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use crate::probe::Probe;
use crate::program::RedisFlavour;
use crate::redis_options::RedisOptions;
use crate::server::{Launch, Place, Server};

const STARTS_MAX: usize = 5;

/// A Redis or Valkey server that a test has started; see [`Server`] for what can be done to it.
#[derive(Debug)]
pub struct RedisServer {
    server: Server,
    socket: PathBuf,
}

impl RedisServer {
    /// Starts one, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When the server is missing or does not start.
    pub async fn start(flavour: RedisFlavour, options: RedisOptions) -> Self {
        for _ in 0..STARTS_MAX {
            let mut new = Self::prepare(flavour, &options);
            match new.try_start().await {
                Ok(()) => return new,
                Err(_) if new.has_lost_its_port() => {}
                Err(why) => new.fail(&why),
            }
        }
        panic!("{STARTS_MAX} times another process was faster to take the port");
    }

    /// The Unix socket that it answers on besides its port, always without TLS.
    pub fn socket(&self) -> &PathBuf {
        &self.socket
    }

    fn prepare(flavour: RedisFlavour, options: &RedisOptions) -> Self {
        let possible = flavour.has_tls() || !options.has_tls();
        assert!(possible, "{flavour:?} is built without TLS");
        let place = Place::claim();
        let socket = place.path().join("socket");
        let text = options.configuration(place.port.address(), &place.data(), &socket);
        let file = place.write("redis.conf", &text);
        let launch = Launch {
            program: flavour.program(),
            arguments: vec![file],
            scheme: if options.has_tls() { "rediss" } else { "redis" },
            probe: Probe::Redis {
                socket: socket.clone(),
            },
        };
        Self {
            server: Server::new(place, launch),
            socket,
        }
    }
}

impl Deref for RedisServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for RedisServer {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}
