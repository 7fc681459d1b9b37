//! A live cluster as it is seen from outside: who owns what, what operators
//! wish, and what moved lately, without taking part.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use divvy::observer::Observer;
//! use divvy::store::MemoryLeases;
//! use std::sync::Arc;
//!
//! let store = Arc::new(MemoryLeases::new("default")?);
//! let mut observer = Observer::of_leases(store);
//! observer.change(|control| {
//!     control.cordoned.insert("worker-3".into());
//! }).await?;
//! assert!(observer.control().await?.cordoned.contains("worker-3"));
//! assert!(observer.look().await?.workers.is_empty());
//! # Ok::<(), divvy::store::StoreError>(())
//! # }).unwrap();
//! ```

mod keeping;
mod leader;
mod lease;
mod mode;
mod snapshot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::SessionId;
use divvy_core::store::{GivingUp, StoreError};
use divvy_core::{Considered, Control, Moment, MoveEntry};
use tokio::time::Instant;

use crate::store::{KeyValue, Leases, StoreSettings, StoreUrl};

pub use mode::Mode;
pub use snapshot::{PartitionStatus, Snapshot, WorkerLife, WorkerStatus};

/// How often a change is tried again because somebody else was faster.
const TRIES_MAX: usize = 20;
/// How long at most passes between two looks of one who waits.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Looks at a live cluster from outside, and changes what operators wish of it.
#[derive(Debug)]
pub struct Observer {
    side: Side,
    /// What was seen of each worker of leader mode, and since when it is so.
    beats: BTreeMap<Box<str>, Beat>,
    origin: Instant,
}

/// Where it looks.
#[derive(Debug, Clone)]
enum Side {
    Leader(Arc<dyn KeyValue>),
    Lease(Arc<dyn Leases>),
}

/// A worker's record as it was last seen to change.
#[derive(Debug, Clone, Copy)]
struct Beat {
    session: SessionId,
    beat: u64,
    since: Moment,
    /// It was seen to change.
    is_beating: bool,
}

impl Observer {
    /// Looks at a cluster in leader mode.
    pub fn of_leader(store: Arc<dyn KeyValue>) -> Self {
        Self::new(Side::Leader(store))
    }

    /// Looks at a cluster in lease mode.
    pub fn of_leases(store: Arc<dyn Leases>) -> Self {
        Self::new(Side::Lease(store))
    }

    fn new(side: Side) -> Self {
        Self {
            side,
            beats: BTreeMap::new(),
            origin: Instant::now(),
        }
    }

    /// Looks at the cluster of `settings` in the store at this address, in the
    /// mode that it is found in unless one is asked for. Makes nothing.
    pub async fn open(
        url: &StoreUrl,
        settings: &StoreSettings,
        mode: Option<Mode>,
    ) -> Result<Self, StoreError> {
        mode::open(url, settings, mode).await
    }

    /// The mode of the cluster.
    pub const fn mode(&self) -> Mode {
        match self.side {
            Side::Leader(_) => Mode::Leader,
            Side::Lease(_) => Mode::Lease,
        }
    }

    /// The store, for people.
    pub fn describe(&self) -> String {
        match &self.side {
            Side::Leader(store) => store.describe(),
            Side::Lease(store) => store.describe(),
        }
    }

    /// The cluster as it is now.
    pub async fn look(&mut self) -> Result<Snapshot, StoreError> {
        let asked = Instant::now();
        let mut snapshot = match self.side.clone() {
            Side::Leader(store) => {
                let seen = leader::look(&*store).await?;
                let now = Moment::from_origin(self.origin.elapsed());
                leader::judge(seen, &mut self.beats, now)
            }
            Side::Lease(store) => lease::look(&*store).await?,
        };
        snapshot.took = asked.elapsed();
        Ok(snapshot)
    }

    /// The cluster as soon as it is known of every worker whether it is alive.
    /// A store of leases knows; in leader mode a worker has to be seen beating,
    /// or to be silent for longer than its lease.
    pub async fn look_long(&mut self) -> Result<Snapshot, StoreError> {
        loop {
            let snapshot = self.look().await?;
            let is_open = |worker: &WorkerStatus| worker.life == WorkerLife::Unknown;
            if !snapshot.workers.iter().any(is_open) {
                return Ok(snapshot);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// How live workers rank for a partition as things are now, the best first.
    /// Nothing in leader mode, where a strategy decides that only the leader
    /// knows.
    pub async fn ranking(&self, partition: &str) -> Result<Vec<Considered>, StoreError> {
        match &self.side {
            Side::Leader(_) => Ok(Vec::new()),
            Side::Lease(store) => lease::ranking(&**store, partition).await,
        }
    }

    /// How a live worker gives up what another should have, in lease mode, if it
    /// says so.
    pub async fn gives_up(&self, worker: &str) -> Result<Option<GivingUp>, StoreError> {
        match &self.side {
            Side::Leader(_) => Ok(None),
            Side::Lease(store) => lease::gives_up(&**store, worker).await,
        }
    }

    /// The last moves, oldest first.
    pub async fn moves(&self) -> Result<Vec<MoveEntry>, StoreError> {
        match &self.side {
            Side::Leader(store) => leader::moves(&**store).await,
            Side::Lease(store) => lease::moves(&**store).await,
        }
    }

    /// What operators wish.
    pub async fn control(&self) -> Result<Control, StoreError> {
        match &self.side {
            Side::Leader(store) => Ok(leader::control(&**store).await?.0),
            Side::Lease(store) => Ok(lease::control(&**store).await?.0),
        }
    }

    /// Changes what operators wish, over what is there by then, and gives what
    /// it has become. `change` may be called several times.
    pub async fn change(
        &self,
        mut change: impl FnMut(&mut Control),
    ) -> Result<Control, StoreError> {
        for _ in 0..TRIES_MAX {
            let changed = match &self.side {
                Side::Leader(store) => leader::change(&**store, &mut change).await?,
                Side::Lease(store) => lease::change(&**store, &mut change).await?,
            };
            if let Some(control) = changed {
                return Ok(control);
            }
        }
        Err(StoreError::unavailable(
            "what operators wish is changed by others all the time: try again",
        ))
    }
}

/// Somebody else wrote what operators wish: nothing of it is overwritten
/// unread.
fn unreadable(place: &str) -> StoreError {
    StoreError::unfit(format_args!(
        "what operators wish cannot be read: another program wrote {place}; delete it, and all \
         wishes with it"
    ))
}
