//! The store that members share, and what they leave there.

use std::sync::Arc;
use std::time::Duration;

use divvy::lease::Group;
use divvy::observer::Observer;
use divvy::store::{
    Key, KeyValue, LeaseName, Leases, Outcome, Prefix, Revision, StoreError, StoreKind,
    StoreSettings, StoreUrl, erase_key_value, erase_leases, open_key_value, open_leases,
};
use divvy_core::lease::Outlook;
use divvy_core::store::LeaseKey;
use divvy_core::{Invalid, WORKER_WEIGHT_DEFAULT};
use divvy_sim::Mode;
use tokio::time::timeout;

/// Longest that somebody waits to see whether a store can be written to.
const WRITTEN_WITHIN: Duration = Duration::from_millis(300);

/// Where a playground on a real store takes place.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The store.
    pub url: StoreUrl,
    /// How it is reached, and the cluster that is made there.
    pub settings: StoreSettings,
}

/// The store as members of a mode use it.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    Leader(Arc<dyn KeyValue>),
    Lease(Arc<dyn Leases>),
}

impl Ground {
    /// The modes that this store has.
    pub(crate) fn modes(&self) -> &'static [&'static str] {
        match self.has_leases() {
            true => &["leader", "lease"],
            false => &["leader"],
        }
    }

    fn has_leases(&self) -> bool {
        self.url.kind() != StoreKind::Nats
    }

    /// Whether members of this mode can share it.
    pub(crate) fn check(&self, mode: Mode) -> Result<(), Invalid> {
        match self.url.kind() {
            StoreKind::Memory => {
                let rule = "is of one process; here each worker is its own: take file:PATH, \
                            nats://… or redis://…, or leave --store out for a simulated world";
                Err(Invalid::new("store", &self.url, rule))
            }
            StoreKind::Nats if mode == Mode::Lease => {
                let rule = "has no leases: lease mode takes a Redis or a file";
                Err(Invalid::new("store", &self.url, rule))
            }
            _ => Ok(()),
        }
    }

    /// Makes the store if it is missing, and says once what is to be known of it.
    pub(crate) async fn make(&self, mode: Mode) -> Result<Opened, StoreError> {
        self.open_by(mode, &self.settings).await
    }

    /// Opens the store that is there.
    pub(crate) async fn open(&self, mode: Mode) -> Result<Opened, StoreError> {
        self.open_by(mode, &self.looking()).await
    }

    async fn open_by(&self, mode: Mode, settings: &StoreSettings) -> Result<Opened, StoreError> {
        Ok(match mode {
            Mode::Leader => Opened::Leader(open_key_value(&self.url, settings).await?),
            Mode::Lease => Opened::Lease(open_leases(&self.url, settings).await?),
        })
    }

    fn looking(&self) -> StoreSettings {
        StoreSettings {
            create: false,
            ..self.settings.clone()
        }
    }

    /// Workers are killed, and everything is deleted in the end: nobody else may
    /// be in this cluster, in either mode.
    pub(crate) async fn check_empty(&self) -> Result<(), StoreError> {
        let settings = self.looking();
        let keys = open_key_value(&self.url, &settings).await?;
        let mut is_empty = keys.list(&Prefix::ALL).await?.is_empty();
        if self.has_leases() {
            let leases = open_leases(&self.url, &settings).await?;
            is_empty &= leases.wishes().await?.is_none();
            is_empty &= leases.moves().await?.is_empty();
            is_empty &= leases.members().await?.is_empty();
        }
        let cluster = &self.settings.cluster;
        match is_empty {
            true => Ok(()),
            false => Err(StoreError::unfit(format_args!(
                "cluster '{cluster}': is in use; workers are killed here, and everything is \
                 deleted in the end, so give one that nobody else has, or none"
            ))),
        }
    }

    /// Deletes everything of the cluster in this mode.
    pub(crate) async fn erase(
        &self,
        mode: Mode,
        group: &str,
        partitions: u32,
    ) -> Result<(), StoreError> {
        let settings = self.looking();
        match mode {
            Mode::Leader => erase_key_value(&self.url, &settings).await,
            Mode::Lease => {
                let groups = [Group::new(group, partitions)?];
                erase_leases(&self.url, &settings, &groups).await
            }
        }
    }

    /// Whether others can write where a process stands still that may be in the
    /// middle of its turn: in a file everybody waits for that.
    pub(crate) async fn can_write(&self, opened: &Opened) -> bool {
        if self.url.kind() != StoreKind::File {
            return true;
        }
        let key = Key::new(["turn"]).expect("a short constant is a key");
        let revision = Revision::new(1).expect("1 is a revision");
        let tried = async {
            match opened {
                // No such value is there, and so nothing is deleted.
                Opened::Leader(store) => store.delete(&key, revision).await.is_ok(),
                // Nobody has wished that, and so nothing is written.
                Opened::Lease(store) => store.set_wishes(Some("-"), "-").await.is_ok(),
            }
        };
        timeout(WRITTEN_WITHIN, tried).await.unwrap_or(false)
    }
}

impl Opened {
    pub(crate) fn observer(&self) -> Observer {
        match self {
            Self::Leader(store) => Observer::of_leader(Arc::clone(store)),
            Self::Lease(store) => Observer::of_leases(Arc::clone(store)),
        }
    }

    /// Deletes what the cluster knows while its members live: they are told by
    /// nothing but what is missing.
    pub(crate) async fn forget(&self) -> Result<bool, StoreError> {
        let Self::Leader(store) = self else {
            return Ok(false);
        };
        for entry in store.list(&Prefix::ALL).await? {
            let mut last = entry;
            // Whoever writes it at the same time is forgotten, too.
            while let Outcome::Conflict = store.delete(&last.key, last.revision).await? {
                let Some(newer) = store.get(&last.key).await? else {
                    break;
                };
                last = newer;
            }
        }
        Ok(true)
    }

    /// Who should have each partition if one worker was not there, in lease
    /// mode.
    pub(crate) async fn desired_without(
        &self,
        worker: &str,
        group: &str,
        partitions: u32,
    ) -> Result<Vec<Option<String>>, StoreError> {
        let Self::Lease(store) = self else {
            return Ok(Vec::new());
        };
        let (mut members, wishes) = tokio::try_join!(store.members(), store.wishes())?;
        members.retain(|member| member.name != worker);
        let cluster = LeaseName::new("cluster", store.cluster())?;
        let groups = vec![Group::new(group, partitions)?];
        let weight = WORKER_WEIGHT_DEFAULT;
        let outlook = Outlook::new(&cluster, &members, wishes.as_deref(), weight, groups);
        let desired = (0..partitions).map(|number| {
            let key = LeaseKey::new(group, number)?;
            Ok(outlook.desired(&key).map(str::to_owned))
        });
        desired.collect::<Result<_, StoreError>>()
    }
}
