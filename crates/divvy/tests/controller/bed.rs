//! Where the controllers of a test meet: one of the stores, with a real server
//! where it has one.

use std::sync::Arc;
use std::time::Duration;

use divvy::controller::{Controller, ControllerSettings, LeaseStoreChoice};
use divvy::lease::Group;
use divvy::store::{Leases, MemoryLeases, StoreSettings, open_leases};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, at_once, until};
use tempfile::TempDir;

use crate::ledger::Ledger;

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// Runs a test on every lease store, on all at once.
pub(crate) fn on_every_store(scenario: impl AsyncFn(Bed) + Copy + Send + 'static) {
    let kinds = [Kind::Memory, Kind::File, Kind::Redis, Kind::Valkey];
    at_once(&kinds, async move |kind| {
        scenario(Bed::new(kind).await).await;
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    File,
    Redis,
    Valkey,
}

pub(crate) enum Bed {
    Memory(MemoryLeases),
    File(TempDir),
    Redis(RedisServer),
}

impl Bed {
    async fn new(kind: Kind) -> Self {
        let flavour = match kind {
            Kind::Memory => return Self::memory(),
            Kind::File => return Self::File(TempDir::new().unwrap()),
            Kind::Redis => RedisFlavour::Redis7,
            Kind::Valkey => RedisFlavour::Valkey9,
        };
        Self::Redis(RedisServer::start(flavour, RedisOptions::new()).await)
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(MemoryLeases::new("tests").unwrap())
    }

    /// The store, for one controller: each has its own connection.
    pub(crate) fn store(&self) -> LeaseStoreChoice {
        match self {
            Self::Memory(store) => store.clone().into(),
            Self::File(directory) => {
                let path = directory.path().join("divvy.db");
                at(&format!("file:{}", path.display()))
            }
            Self::Redis(server) => at(&server.url()),
        }
    }

    /// The same store, to look into.
    pub(crate) async fn leases(&self) -> Arc<dyn Leases> {
        match self.store() {
            LeaseStoreChoice::Open(store) => store,
            LeaseStoreChoice::At(url, settings) => open_leases(&url, &settings).await.unwrap(),
        }
    }

    /// A controller that serves `orders`, with consumers of this ledger.
    pub(crate) async fn controller(
        &self,
        name: &str,
        partitions: u32,
        ledger: &Arc<Ledger>,
    ) -> Controller {
        let settings = settings(partitions);
        start(self.store(), name, settings, ledger).await
    }
}

pub(crate) fn at(address: &str) -> LeaseStoreChoice {
    (address.parse().unwrap(), store_settings()).into()
}

pub(crate) async fn start(
    store: LeaseStoreChoice,
    name: &str,
    settings: ControllerSettings,
    ledger: &Arc<Ledger>,
) -> Controller {
    Controller::builder(store, ledger.factory(name))
        .settings(settings)
        .worker(name)
        .start()
        .await
        .unwrap()
}

/// Short timings, and a lease that a busy machine can keep.
pub(crate) fn settings(partitions: u32) -> ControllerSettings {
    let mut settings = ControllerSettings::fast();
    settings.groups = vec![Group::new("orders", partitions).unwrap()];
    settings.lease.lease_ttl = Duration::from_secs(3);
    settings.lease.heartbeat_ttl = Duration::from_secs(3);
    settings.lease.renew_interval = Duration::from_millis(500);
    settings.lease.heartbeat_interval = Duration::from_millis(500);
    settings.lease.releases_per_reconcile = 8;
    settings.lease.shutdown_timeout = SOON;
    settings.lease.start_deadline = SOON;
    settings.lease.stop_deadline = SOON;
    settings.startup_timeout = SOON;
    settings
}

pub(crate) fn store_settings() -> StoreSettings {
    StoreSettings {
        cluster: "tests".to_owned(),
        connect_timeout: Duration::from_secs(20),
        reconnect_delay_max: Duration::from_millis(100),
        ping_interval: Duration::from_secs(1),
        ..StoreSettings::default()
    }
}

/// Waits until so many partitions run, each once, and each where it should.
pub(crate) async fn settled(controllers: &[&Controller], partitions: usize) {
    until(SOON, "everything is where it should be", async || {
        let owned: usize = controllers.iter().map(|c| c.owned().len()).sum();
        let aligned = controllers.iter().all(|c| c.misaligned().is_empty());
        let knows_all = controllers
            .iter()
            .all(|c| c.members().len() == controllers.len());
        // A newcomer is known before what it should have is; of few, one may
        // have none.
        let has_share = controllers.iter().all(|c| !c.owned().is_empty());
        let has_share = has_share || partitions < 8 * controllers.len();
        owned == partitions && aligned && knows_all && has_share
    })
    .await;
}
