//! Where the managers of a test meet: one of the stores, with a real server
//! where it has one.

use std::sync::Arc;
use std::time::Duration;

use divvy::manager::{Settings, StoreChoice};
use divvy::store::{KeyValue, MemoryKeyValue, StoreSettings, open_key_value};
use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer, Server, at_once,
};
use tempfile::TempDir;
use tokio::runtime::Handle;

/// Runs a test on every store, on all at once.
pub(crate) fn on_every_store(scenario: impl AsyncFn(Bed) + Copy + Send + 'static) {
    on_stores(
        &[Kind::Memory, Kind::File, Kind::Redis, Kind::Nats],
        scenario,
    );
}

/// Runs a test on every store that has a server, on all at once.
pub(crate) fn on_every_server(scenario: impl AsyncFn(Bed) + Copy + Send + 'static) {
    on_stores(&[Kind::Redis, Kind::Nats], scenario);
}

fn on_stores(kinds: &[Kind], scenario: impl AsyncFn(Bed) + Copy + Send + 'static) {
    at_once(kinds, async move |kind| {
        scenario(Bed::new(kind).await).await;
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    File,
    Redis,
    Nats,
}

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(40);

pub(crate) enum Bed {
    Memory(MemoryKeyValue),
    File(TempDir),
    Redis(RedisServer),
    Nats(NatsServer),
}

impl Bed {
    async fn new(kind: Kind) -> Self {
        match kind {
            Kind::Memory => Self::memory(),
            Kind::File => Self::file(),
            Kind::Redis => Self::redis().await,
            Kind::Nats => Self::nats().await,
        }
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(MemoryKeyValue::new())
    }

    pub(crate) fn file() -> Self {
        Self::File(TempDir::new().unwrap())
    }

    pub(crate) async fn redis() -> Self {
        Self::Redis(RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await)
    }

    pub(crate) async fn nats() -> Self {
        Self::Nats(NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await)
    }

    /// The store, for one manager: each has its own connection.
    pub(crate) fn store(&self) -> StoreChoice {
        match self.address() {
            Ok(address) => (address.parse().unwrap(), store_settings()).into(),
            Err(memory) => memory.clone().into(),
        }
    }

    /// The same, open, with its connection served by this runtime, and
    /// operations that take no longer than this.
    pub(crate) async fn open(&self, runtime: &Handle, limit: Duration) -> Arc<dyn KeyValue> {
        let address = match self.address() {
            Ok(address) => address.parse().unwrap(),
            Err(memory) => return Arc::new(memory.clone()),
        };
        let settings = StoreSettings {
            operation_timeout: limit,
            ..store_settings()
        };
        let opening = runtime.spawn(async move { open_key_value(&address, &settings).await });
        opening.await.unwrap().unwrap()
    }

    pub(crate) fn address(&self) -> Result<String, &MemoryKeyValue> {
        match self {
            Self::Memory(store) => Err(store),
            Self::File(directory) => {
                let path = directory.path().join("divvy.db");
                Ok(format!("file:{}", path.display()))
            }
            Self::Redis(server) => Ok(server.url()),
            Self::Nats(server) => Ok(server.url()),
        }
    }

    /// The server, if there is one.
    pub(crate) fn server(&mut self) -> Option<&mut Server> {
        match self {
            Self::Memory(_) | Self::File(_) => None,
            Self::Redis(server) => Some(server),
            Self::Nats(server) => Some(server),
        }
    }

    /// Short windows, and a lease that a busy machine can keep.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::fast();
        settings.leader.heartbeat_interval = Duration::from_millis(400);
        settings.leader.heartbeat_ttl = Duration::from_secs(3);
        settings.leader.leader_lease = Duration::from_millis(1500);
        settings.leader.startup_timeout = SOON;
        settings.leader.shutdown_timeout = SOON;
        settings.leader.start_deadline = SOON;
        settings.leader.stop_deadline = SOON;
        settings
    }
}

fn store_settings() -> StoreSettings {
    StoreSettings {
        cluster: "tests".to_owned(),
        connect_timeout: Duration::from_secs(20),
        reconnect_delay_max: Duration::from_millis(100),
        ping_interval: Duration::from_secs(1),
        ..StoreSettings::default()
    }
}
