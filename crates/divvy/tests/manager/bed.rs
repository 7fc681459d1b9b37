//! Where the managers of a test meet: one of the stores, with a real server
//! where it has one.

use std::time::Duration;

use divvy::manager::{Settings, StoreChoice};
use divvy::store::{MemoryKeyValue, StoreSettings};
use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer, at_once,
};
use tempfile::TempDir;

/// Runs a test on every store, on all at once.
pub(crate) fn on_every_store(scenario: impl AsyncFn(Bed) + Copy + Send + 'static) {
    let kinds = [Kind::Memory, Kind::File, Kind::Redis, Kind::Nats];
    at_once(&kinds, async move |kind| {
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
            Kind::File => Self::File(TempDir::new().unwrap()),
            Kind::Redis => {
                Self::Redis(RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await)
            }
            Kind::Nats => Self::nats().await,
        }
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(MemoryKeyValue::new())
    }

    pub(crate) async fn nats() -> Self {
        Self::Nats(NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await)
    }

    /// The store, for one manager: each has its own connection.
    pub(crate) fn store(&self) -> StoreChoice {
        let address = match self {
            Self::Memory(store) => return store.clone().into(),
            Self::File(directory) => {
                format!("file:{}", directory.path().join("divvy.db").display())
            }
            Self::Redis(server) => server.url(),
            Self::Nats(server) => server.url(),
        };
        (address.parse().unwrap(), store_settings()).into()
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
