//! The messages of owned partitions, from a NATS JetStream stream.
//!
//! Each partition has a durable consumer of its own, for its subject alone,
//! which is made once and kept when the partition moves: the next owner goes on
//! where the last one acknowledged. Who owns a partition pulls from it, one
//! message at a time or several at once, and acknowledges what its [`Handler`]
//! has done.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use async_trait::async_trait;
//! use divvy::Partition;
//! use divvy::manager::{Grant, Manager, Settings, StaticSource};
//! use divvy::store::{StoreSettings, StoreUrl};
//! use divvy::subscriptions::{Failure, Handler, Message, SubscriptionSettings, Subscriptions};
//!
//! struct Print;
//!
//! #[async_trait]
//! impl Handler for Print {
//!     async fn handle(
//!         &self,
//!         message: &Message,
//!         partition: &Partition,
//!         grant: &Grant,
//!     ) -> Result<(), Failure> {
//!         let token = grant.token().get();
//!         println!("{partition}: message {} under token {token}", message.sequence());
//!         Ok(())
//!     }
//! }
//!
//! let url: StoreUrl = "nats://localhost:4222".parse()?;
//! let reach = StoreSettings::default();
//! let settings = SubscriptionSettings::new("orders", "work");
//! let subscriptions = Subscriptions::open(&url, &reach, settings, Print).await?;
//! let source = StaticSource::shards(["orders"], 8)?;
//! let manager = Manager::builder((url, reach), source).hooks(subscriptions.clone());
//! let manager = manager.start().await?;
//! # Ok(())
//! # }
//! ```
//!
//! What a user gets wrong easily: a message is handled at least once. It is
//! handled twice when a worker dies after the effect and before the
//! acknowledgement, and a worker that was paused may act after its partition
//! has moved. The resource tells, by the grant's token and the message's
//! sequence.

mod acks;
mod consumer;
mod dead_letter;
mod done;
mod error;
mod handler;
mod health;
mod in_flight;
mod inbox;
mod jetstream;
mod lane;
mod leading;
mod message;
mod metrics;
mod policy;
mod pulls;
mod settings;
mod shared;
mod work;

pub use error::SubscriptionError;
pub use handler::{Failure, Handler};
pub use health::PartitionHealth;
pub use message::Message;
pub use metrics::SubscriptionMetrics;
pub use settings::{DeadLetters, Mode, Retention, SubscriptionSettings};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::store::{StoreError, StoreErrorKind};
use divvy_core::{Invalid, Partition, Partitions};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use self::consumer::Wanted;
use self::health::Gauges;
use self::in_flight::InFlight;
use self::jetstream::JetStream;
use self::lane::{Lane, Memory};
use self::shared::Shared;
use self::work::Means;
use crate::manager::{Grant, HookError, Hooks, PartitionSource};
use crate::store::nats::link::Link;
use crate::store::nats::{read_plan, version};
use crate::store::{StoreKind, StoreSettings, StoreUrl};

/// How often a waiting server says that it is there, at least and at most.
const HEARTBEATS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// How much longer than it may take a lane is waited for.
const SLACK: Duration = Duration::from_secs(1);

/// The messages of the partitions that this worker owns. Clones are the same,
/// and everything ends with the last of them.
///
/// As [`Hooks`] it follows a [`Manager`](crate::manager::Manager). Hooks of
/// your own, or another source of assignments, call
/// [`Subscriptions::assign`] and [`Subscriptions::revoke`].
#[derive(Clone)]
pub struct Subscriptions {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    slots: Mutex<BTreeMap<Box<str>, Arc<Slot>>>,
    leads: watch::Sender<bool>,
    ensuring: Mutex<Option<JoinHandle<()>>>,
}

/// A partition that is or was assigned.
struct Slot {
    state: tokio::sync::Mutex<State>,
    shown: Mutex<Option<Shown>>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    memory: Memory,
}

struct Running {
    grant: Grant,
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<Memory>,
}

/// What is to be seen of it without waiting.
struct Shown {
    grant: Grant,
    gauges: Arc<Gauges>,
}

impl Subscriptions {
    /// Connects, and makes or checks the streams. Nothing is consumed before a
    /// partition is assigned.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime: handlers run on it.
    pub async fn open(
        url: &StoreUrl,
        reach: &StoreSettings,
        settings: SubscriptionSettings,
        handler: impl Handler,
    ) -> Result<Self, SubscriptionError> {
        settings.check()?;
        reach.check()?;
        if url.kind() != StoreKind::Nats {
            return Err(Invalid::new("store", url, "is not a NATS server's address").into());
        }
        let plan = read_plan(url, reach).await?;
        let deadline = Instant::now() + reach.connect_timeout;
        let link = connect(&plan, deadline)
            .await
            .map_err(|error| StoreError::new(error.kind(), format_args!("{url}: {error}")))?;
        version::check(&link.server().version, reach.replicas)?;
        let jetstream = JetStream::new(link, &settings.stream, reach.operation_timeout);
        let heartbeat = reach.ping_interval.clamp(HEARTBEATS.0, HEARTBEATS.1);
        let handler = Arc::new(handler);
        let shared = Shared::open(jetstream, settings, handler, heartbeat, reach.replicas).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                shared: Arc::new(shared),
                slots: Mutex::default(),
                leads: watch::Sender::new(false),
                ensuring: Mutex::default(),
            }),
        })
    }

    /// While this worker leads, has it make the consumers of all partitions of
    /// `source`, and look again every `reconcile_interval`. In streams of
    /// interest, messages are kept only for consumers that are there when they
    /// come.
    pub fn ensuring(self, source: impl PartitionSource) -> Self {
        let (shared, leads) = (Arc::clone(&self.inner.shared), self.inner.leads.subscribe());
        let task = tokio::spawn(leading::run(shared, leads, Arc::new(source)));
        let before = lock(&self.inner.ensuring).replace(task);
        if let Some(before) = before {
            before.abort();
        }
        self
    }

    /// Makes the consumers of these partitions that are missing; gives how
    /// many there were. For a publisher to call before it begins, where the
    /// stream's retention is interest.
    pub async fn ensure(&self, partitions: &Partitions) -> Result<usize, SubscriptionError> {
        leading::ensure(&self.inner.shared, partitions).await
    }

    /// Deletes consumers of partitions that are not among these; gives their
    /// number. For partitions that will never be again: with a consumer goes
    /// its position, and in streams of interest what it has not consumed.
    pub async fn prune(&self, partitions: &Partitions) -> Result<usize, SubscriptionError> {
        leading::prune(&self.inner.shared, partitions).await
    }

    /// The partition is this worker's: its messages are consumed from now on.
    /// Returns at once; [`Subscriptions::health`] shows how it goes. For a
    /// partition that is assigned already, with the same token, nothing
    /// happens; with another, the old one ends first.
    pub async fn assign(
        &self,
        partition: &Partition,
        grant: Grant,
    ) -> Result<(), SubscriptionError> {
        let shared = &self.inner.shared;
        let wanted = Wanted::new(&shared.settings, partition)?;
        let slot = self.slot(partition);
        let mut state = slot.state.lock().await;
        if let Some(running) = &state.running
            && running.grant.token() == grant.token()
            // One that is over ends by itself: this is a new one.
            && running.grant.is_current()
            && !running.task.is_finished()
        {
            return Ok(());
        }
        slot.end(&mut state, shared).await;
        let gauges = Arc::new(Gauges::default());
        *lock(&slot.shown) = Some(Shown {
            grant: grant.clone(),
            gauges: Arc::clone(&gauges),
        });
        let (stop, stopping) = watch::channel(None);
        let mut memory = state.memory.clone();
        if memory.stream.is_empty() {
            memory.stream = shared.stream();
        }
        let means = Arc::new(Means {
            jetstream: Arc::clone(&shared.jetstream),
            handler: Arc::clone(&shared.handler),
            permits: Arc::clone(&shared.permits),
            grant: grant.clone(),
            ack_wait: shared.settings.ack_wait,
            cut: stopping.clone(),
        });
        let lane = Lane {
            shared: Arc::clone(shared),
            wanted,
            grant: grant.clone(),
            gauges,
            memory,
            stop: stopping,
            acks: Default::default(),
            means,
            running: InFlight::new(shared.settings.mode),
            in_hand: Default::default(),
            reconcile: Box::pin(tokio::time::sleep_until(Instant::now())),
        };
        let task = tokio::spawn(lane.run());
        state.running = Some(Running { grant, stop, task });
        Ok(())
    }

    /// The partition goes to somebody else. Handlers that run may end until
    /// `drain_timeout` is over, and are dropped then; what was handled is
    /// acknowledged, the rest is given back. Returns when that is done.
    pub async fn revoke(&self, partition: &Partition) {
        let slot = self.slot(partition);
        let mut state = slot.state.lock().await;
        slot.end(&mut state, &self.inner.shared).await;
    }

    /// Revokes everything.
    pub async fn close(self) {
        let partitions: Vec<Partition> = self.health().into_iter().map(|h| h.partition).collect();
        let mut revoking = JoinSet::new();
        for partition in partitions {
            let this = self.clone();
            revoking.spawn(async move { this.revoke(&partition).await });
        }
        while revoking.join_next().await.is_some() {}
    }

    /// How each partition does that this worker owns, in the order of their
    /// text.
    pub fn health(&self) -> Vec<PartitionHealth> {
        let slots = lock(&self.inner.slots);
        let shown = slots.values().filter_map(|slot| {
            let shown = lock(&slot.shown);
            let Shown { grant, gauges } = shown.as_ref()?;
            Some(gauges.health(grant.partition(), grant.token()))
        });
        shown.collect()
    }

    /// What was counted over all partitions.
    pub fn metrics(&self) -> &SubscriptionMetrics {
        &self.inner.shared.metrics
    }

    /// Everything that was counted, in Prometheus' text form; `worker` becomes
    /// a label.
    pub fn render_metrics(&self, worker: &str) -> String {
        self.inner.shared.metrics.render(worker, &self.health())
    }

    /// The settings.
    pub fn settings(&self) -> &SubscriptionSettings {
        &self.inner.shared.settings
    }

    fn slot(&self, partition: &Partition) -> Arc<Slot> {
        let mut slots = lock(&self.inner.slots);
        let slot = slots.entry(partition.as_str().into()).or_insert_with(|| {
            Arc::new(Slot {
                state: tokio::sync::Mutex::default(),
                shown: Mutex::default(),
            })
        });
        Arc::clone(slot)
    }
}

impl Slot {
    /// Stops what runs, and waits for that.
    async fn end(&self, state: &mut State, shared: &Shared) {
        let Some(running) = state.running.take() else {
            return;
        };
        let deadline = Instant::now() + shared.settings.drain_timeout;
        running.stop.send_replace(Some(deadline));
        let mut task = running.task;
        let bound = deadline + shared.jetstream.operation_timeout * 2 + SLACK;
        match tokio::time::timeout_at(bound, &mut task).await {
            Ok(Ok(memory)) => state.memory = memory,
            Ok(Err(error)) => tracing::error!("the task of a partition ended: {error}"),
            Err(_elapsed) => {
                task.abort();
                let partition = running.grant.partition().as_str();
                tracing::error!(partition, "did not end within {bound:?}, and was ended");
            }
        }
        *lock(&self.shown) = None;
    }
}

async fn connect(
    plan: &crate::store::nats::plan::Plan,
    deadline: Instant,
) -> Result<Link, StoreError> {
    let mut backoff =
        crate::store::backoff::Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    loop {
        match Link::connect(plan).await {
            Err(error)
                if error.kind() == StoreErrorKind::Unavailable && Instant::now() < deadline =>
            {
                tracing::debug!(%error, "cannot connect yet");
            }
            ended => return ended,
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.ensuring).take() {
            task.abort();
        }
        for slot in lock(&self.slots).values() {
            // Nobody can hold it any more.
            if let Ok(mut state) = slot.state.try_lock()
                && let Some(running) = state.running.take()
            {
                running.task.abort();
            }
        }
    }
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings();
        f.debug_struct("Subscriptions")
            .field("stream", &settings.stream)
            .field("name", &settings.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Hooks for Subscriptions {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        Ok(self.assign(partition, grant).await?)
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        self.revoke(partition).await;
        Ok(())
    }

    async fn leadership_changed(&self, is_leader: bool) {
        self.inner.leads.send_replace(is_leader);
    }
}
