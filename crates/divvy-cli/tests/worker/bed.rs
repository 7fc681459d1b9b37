//! The store that the processes of a test share.

use std::path::PathBuf;
use std::time::Duration;

use divvy::store::{Entry, Prefix, StoreSettings, open_key_value};
use divvy_testbed::{ClusterKind, RedisFlavour, RedisOptions, RedisServer, StoreServer, at_once};
use tempfile::TempDir;

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// The lease of all workers: short, but to be kept on a busy machine.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

const CONFIG: &str = "
preset: fast
heartbeat_ttl: 2s
heartbeat_interval: 300ms
leader_lease: 1s
startup_timeout: 60s
shutdown_timeout: 30s
start_deadline: 30s
stop_deadline: 30s
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    File,
    Redis,
    /// A Redis that keeps nothing through a restart.
    ForgetfulRedis,
    Nats,
}

/// Runs a test on these stores, on all at once.
pub(crate) fn on_stores(stores: &[Store], scenario: impl AsyncFn(Bed) + Copy + Send + 'static) {
    at_once(stores, async move |store| {
        scenario(Bed::on(store).await).await;
    });
}

pub(crate) struct Bed {
    pub(crate) server: StoreServer,
    directory: TempDir,
}

async fn redis(options: RedisOptions) -> StoreServer {
    StoreServer::Redis(RedisServer::start(RedisFlavour::Redis7, options).await)
}

impl Bed {
    fn new(server: StoreServer) -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("worker.yaml"), CONFIG).unwrap();
        Self { server, directory }
    }

    async fn on(store: Store) -> Self {
        Self::new(match store {
            Store::File => StoreServer::File,
            Store::Redis => redis(RedisOptions::new().append_only()).await,
            Store::ForgetfulRedis => redis(RedisOptions::new()).await,
            Store::Nats => StoreServer::start(ClusterKind::LedByNats).await,
        })
    }

    pub(crate) fn address(&self) -> String {
        self.server.address(&self.file("divvy.db"))
    }

    /// Adds a line to the settings of workers that start later.
    pub(crate) fn set(&self, line: &str) {
        std::fs::write(self.config(), format!("{CONFIG}{line}\n")).unwrap();
    }

    /// A file beside the others of the test.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// All that is in the store now.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let settings = StoreSettings {
            cluster: "tests".to_owned(),
            ..StoreSettings::default()
        };
        let url = self.address().parse().unwrap();
        let store = open_key_value(&url, &settings).await.unwrap();
        store.list(&Prefix::ALL).await.unwrap()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("worker.yaml")
    }
}
