//! What a manager shows of itself: written by its driver, read by everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use divvy_core::leader::{Holder, Lifecycle, SelfDescription, State, Version};
use divvy_core::store::Token;
use divvy_core::{Health, Partition, Worker};
use tokio::sync::{mpsc, oneshot, watch};

use super::error::{ManagerError, state_name};
use super::metrics::Metrics;
use super::settings::{check_name, wrong_weight};
use super::shown::Shown;

/// The assignment of one worker.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct CurrentAssignment {
    /// The version in force here; none before the first.
    pub version: Option<Version>,
    /// How far the cluster has come.
    pub lifecycle: Option<Lifecycle>,
    /// What this worker owns, in the order of the partitions' text: what was
    /// started and has not been stopped. A partition is here from when the hook
    /// `assigned` has returned until `revoked` has.
    pub partitions: Arc<[AssignedPartition]>,
}

/// A partition that a worker owns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignedPartition {
    /// Which.
    pub partition: Partition,
    /// The token that it was granted with.
    pub token: Token,
}

/// What people ask a driver for.
#[derive(Debug)]
pub(super) enum Wish {
    Refresh,
    Holder(Box<str>, oneshot::Sender<Option<Holder>>),
}

/// What a driver writes and a [`View`] reads.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) state: Arc<Shown<State>>,
    pub(super) assignment: Arc<Shown<Arc<CurrentAssignment>>>,
    pub(super) worker_id: Shown<Option<Arc<str>>>,
    /// What keeps it from its work, if anything does.
    pub(super) trouble: Shown<Option<Arc<str>>>,
    /// What the first grants wait for, if they do.
    pub(super) waits_for: Shown<Option<Arc<str>>>,
    pub(super) is_leader: AtomicBool,
    /// Whether any hook of a partition was called that nothing has undone.
    pub(super) is_working: AtomicBool,
    pub(super) description: watch::Sender<SelfDescription>,
    pub(super) wishes: mpsc::Sender<Wish>,
    pub(super) metrics: Metrics,
}

impl Status {
    /// What a worker shows before it begins, and where its wishes come out.
    pub(super) fn new(description: SelfDescription) -> (Arc<Self>, mpsc::Receiver<Wish>) {
        let (wishes, wished) = mpsc::channel(16);
        let status = Self {
            state: Arc::new(Shown::new(State::Init)),
            assignment: Arc::new(Shown::new(Arc::default())),
            worker_id: Shown::new(None),
            trouble: Shown::new(None),
            waits_for: Shown::new(None),
            is_leader: AtomicBool::new(false),
            is_working: AtomicBool::new(false),
            description: watch::Sender::new(description),
            wishes,
            metrics: Metrics::default(),
        };
        (Arc::new(status), wished)
    }

    /// The driver is gone without a last word: nothing is owned any more.
    pub(super) fn nothing_left(&self) {
        self.is_leader.store(false, Ordering::Relaxed);
        self.worker_id.set(None);
        self.trouble.set(None);
        self.waits_for.set(None);
        self.assignment.set(Arc::default());
        self.metrics.nothing_left();
    }
}

/// A look at a manager, before, while and after it runs. Clones are the same;
/// none of them keeps the manager alive or can hold up its driver.
///
/// ```
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
/// use divvy::manager::{Manager, Settings, Shutdown, State, StaticSource};
/// use divvy::store::MemoryKeyValue;
///
/// let source = StaticSource::shards(["orders"], 4)?;
/// let manager = Manager::builder(MemoryKeyValue::new(), source);
/// let manager = manager.settings(Settings::fast()).start().await?;
/// let view = manager.view();
/// view.wait_for(State::Stable).await?;
/// assert!(view.is_leader(), "there is nobody else");
///
/// let mut following = view.watch_assignment();
/// while following.current().partitions.len() < 4 {
///     following.changed().await;
/// }
/// manager.stop(Shutdown::Leave).await?;
/// assert!(view.current_assignment().partitions.is_empty());
/// # Ok::<(), divvy::manager::ManagerError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct View {
    pub(super) status: Arc<Status>,
}

impl View {
    /// The stable id; none before the claim, and none while a lost session is
    /// being replaced.
    pub fn worker_id(&self) -> Option<Arc<str>> {
        self.status.worker_id.get()
    }

    /// What keeps this worker from its work and lasts, for people: its lease
    /// cannot be renewed, or the assignment that is there cannot be read.
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.status.trouble.get()
    }

    /// What the first grants of this cluster wait for, and for how long at
    /// most, for people: a quarantine, or more workers. It ends by itself.
    pub fn waits_for(&self) -> Option<Arc<str>> {
        self.status.waits_for.get()
    }

    /// Whether this worker leads, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.status.is_leader.load(Ordering::Relaxed)
    }

    /// What this worker owns.
    pub fn current_assignment(&self) -> Arc<CurrentAssignment> {
        self.status.assignment.get()
    }

    /// What the worker is doing.
    pub fn state(&self) -> State {
        self.status.state.get()
    }

    /// Waits until the worker is in this state; an error if it ends before.
    /// A state that passes quickly may be missed.
    pub async fn wait_for(&self, state: State) -> Result<(), ManagerError> {
        let mut states = self.watch_state();
        loop {
            match states.current() {
                current if current == state => return Ok(()),
                State::Shutdown => {
                    let text = format!("it did not become {}", state_name(state));
                    return Err(ManagerError::Ended(text.into()));
                }
                _ => states.changed().await,
            };
        }
    }

    /// Follows the assignment.
    pub fn watch_assignment(&self) -> Following<Arc<CurrentAssignment>> {
        Following::new(&self.status.assignment)
    }

    /// Follows the state.
    pub fn watch_state(&self) -> Following<State> {
        Following::new(&self.status.state)
    }

    /// Has the leader read the source of partitions again, whoever that is.
    /// Returns when the wish is taken, not when it is fulfilled.
    pub async fn refresh_partitions(&self) -> Result<(), ManagerError> {
        let sent = self.status.wishes.send(Wish::Refresh).await;
        sent.map_err(|_closed| ManagerError::Ended("nobody reads partitions".into()))
    }

    /// Who has a partition, by the newest assignment that this worker knows;
    /// nothing if there is no such partition, or it has ended.
    pub async fn holder_of(&self, partition: &str) -> Option<Holder> {
        let (reply, found) = oneshot::channel();
        let wish = Wish::Holder(partition.into(), reply);
        self.status.wishes.send(wish).await.ok()?;
        found.await.ok().flatten()
    }

    /// Says whether this worker is fit to own partitions. An unhealthy one is
    /// drained, unless all are unhealthy.
    pub fn report_health(&self, health: Health) {
        self.describe(|description| description.health = health);
    }

    /// Says what this worker's capacity is, in relation to the others'.
    pub fn report_weight(&self, weight: f64) -> Result<(), ManagerError> {
        // The bounds are a worker's.
        let worker = Worker::new("worker")?.with_weight(weight);
        let weight = worker.map_err(|_error| wrong_weight(weight))?.weight();
        self.describe(|description| description.weight = weight);
        Ok(())
    }

    /// Says which zone this worker is in, for strategies that spread over zones.
    pub fn report_zone(&self, zone: Option<&str>) -> Result<(), ManagerError> {
        if let Some(zone) = zone {
            check_name("zone", zone)?;
        }
        self.describe(|description| description.zone = zone.map(Into::into));
        Ok(())
    }

    fn describe(&self, change: impl FnOnce(&mut SelfDescription)) {
        self.status.description.send_if_modified(|description| {
            let before = description.clone();
            change(description);
            *description != before
        });
    }

    /// What was counted and measured.
    pub fn metrics(&self) -> &Metrics {
        &self.status.metrics
    }
}

/// Follows a value that changes; of several changes in a row, only the last
/// may be seen.
#[derive(Debug, Clone)]
pub struct Following<T> {
    shown: Arc<Shown<T>>,
    changes: watch::Receiver<()>,
}

impl<T: Clone> Following<T> {
    fn new(shown: &Arc<Shown<T>>) -> Self {
        Self {
            changes: shown.changes.subscribe(),
            shown: Arc::clone(shown),
        }
    }

    /// The value now.
    pub fn current(&mut self) -> T {
        // Before the value is read: what changes after that is news.
        self.changes.mark_unchanged();
        self.shown.get()
    }

    /// Waits until it is another than the one seen last. When the manager is
    /// gone, that is for ever.
    pub async fn changed(&mut self) -> T {
        match self.changes.changed().await {
            Ok(()) => self.current(),
            Err(_gone) => std::future::pending().await,
        }
    }
}
