//! What a controller shows of itself: written by its driver, read by
//! everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use divvy_core::lease::{Explained, Group, LeaseSettings, Misaligned, SelfDescription};
use divvy_core::store::{LeaseKey, Token};
use divvy_core::{Invalid, Moment, Partition};
use tokio::sync::{mpsc, oneshot, watch};

use super::metrics::ControllerMetrics;
use crate::manager::MetricLabels;

/// A partition that a worker has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owned {
    /// Which.
    pub partition: Partition,
    /// The token that it was granted with.
    pub token: Token,
    /// Since when, on the clock that all processes of this machine share.
    pub since: Moment,
    /// Whether its consumer is being stopped.
    pub is_stopping: bool,
    /// Whether that was not confirmed in time, so that its lease is left to
    /// expire.
    pub is_stop_unconfirmed: bool,
}

/// Groups, each with its number of partitions.
type Sizes = Arc<[(Box<str>, u32)]>;

/// What people ask a driver for.
#[derive(Debug)]
pub(super) enum Wish {
    Refresh,
    Regroup(Vec<Group>),
    Tune(Box<LeaseSettings>),
    Explain(LeaseKey, oneshot::Sender<Option<Explained>>),
}

#[derive(Debug)]
pub(super) struct Status {
    pub(super) worker: Arc<str>,
    pub(super) owned: watch::Sender<Arc<[Owned]>>,
    pub(super) misaligned: watch::Sender<Arc<[Misaligned]>>,
    pub(super) members: watch::Sender<Arc<[Box<str>]>>,
    pub(super) groups: watch::Sender<Sizes>,
    pub(super) backoff: AtomicBool,
    pub(super) joined: watch::Sender<bool>,
    pub(super) ended: watch::Sender<bool>,
    pub(super) description: watch::Sender<SelfDescription>,
    pub(super) drained: watch::Sender<bool>,
    /// Operators wish that it gives up everything.
    pub(super) drain_wished: AtomicBool,
    pub(super) wishes: mpsc::Sender<Wish>,
    pub(super) metrics: ControllerMetrics,
}

impl Status {
    pub(super) fn new(
        worker: &str,
        description: SelfDescription,
    ) -> (Arc<Self>, mpsc::Receiver<Wish>) {
        let (wishes, wished) = mpsc::channel(16);
        let status = Self {
            worker: worker.into(),
            owned: watch::Sender::new(Arc::default()),
            misaligned: watch::Sender::new(Arc::default()),
            members: watch::Sender::new(Arc::default()),
            groups: watch::Sender::new(Arc::default()),
            backoff: AtomicBool::new(false),
            joined: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            description: watch::Sender::new(description),
            drained: watch::Sender::new(false),
            drain_wished: AtomicBool::new(false),
            wishes,
            metrics: ControllerMetrics::default(),
        };
        (Arc::new(status), wished)
    }
}

/// A look at a controller, while and after it runs. Clones are the same; none
/// of them keeps the controller alive.
#[derive(Debug, Clone)]
pub struct ControllerView {
    pub(super) status: Arc<Status>,
}

impl ControllerView {
    /// The worker's name in its cluster.
    pub fn worker(&self) -> &str {
        &self.status.worker
    }

    /// What this worker has, in the order in which it was taken: what was
    /// started and has not been stopped.
    pub fn owned(&self) -> Arc<[Owned]> {
        Arc::clone(&self.status.owned.borrow())
    }

    /// Waits until what this worker has is as wished; for ever, if it never is.
    pub async fn wait_until(&self, mut holds: impl FnMut(&[Owned]) -> bool) {
        let mut owned = self.status.owned.subscribe();
        if owned.wait_for(|owned| holds(owned)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Partitions that are not where they should be, as this worker sees it,
    /// and what keeps them.
    pub fn misaligned(&self) -> Arc<[Misaligned]> {
        Arc::clone(&self.status.misaligned.borrow())
    }

    /// The live workers that this worker knows of.
    pub fn members(&self) -> Arc<[Box<str>]> {
        Arc::clone(&self.status.members.borrow())
    }

    /// The groups that it serves, each with its number of partitions.
    pub fn groups(&self) -> Arc<[(Box<str>, u32)]> {
        Arc::clone(&self.status.groups.borrow())
    }

    /// Whether the worker has its name and takes part.
    pub fn is_joined(&self) -> bool {
        *self.status.joined.borrow()
    }

    /// Waits until it has ended, stopped or by itself.
    pub async fn until_ended(&self) {
        let mut ended = self.status.ended.subscribe();
        // Where its thread is gone, it has ended, too.
        let _gone = ended.wait_for(|ended| *ended).await.is_err();
    }

    /// Whether the store has failed and does not work again: nothing is taken
    /// or given up, but for single attempts.
    pub fn backoff_active(&self) -> bool {
        self.status.backoff.load(Ordering::Relaxed)
    }

    /// Says whether this worker is fit to have partitions. An unhealthy one
    /// hands them on at once, unless nobody else can take them.
    pub fn report_health(&self, healthy: bool) {
        self.describe(|description| description.healthy = healthy);
    }

    /// Whether operators wish that this worker gives up everything, by
    /// `divvy drain`.
    pub fn is_drain_wished(&self) -> bool {
        self.status.drain_wished.load(Ordering::Relaxed)
    }

    /// Says whether this worker shall give up everything, as soon as another
    /// can take it, and take nothing.
    pub fn report_drained(&self, drained: bool) {
        self.status.drained.send_if_modified(|shown| {
            let before = std::mem::replace(shown, drained);
            before != drained
        });
    }

    /// Says what this worker's capacity is, in relation to the others'.
    pub fn report_weight(&self, weight: f64) -> Result<(), Invalid> {
        let description = *self.status.description.borrow();
        SelfDescription {
            weight,
            ..description
        }
        .check()?;
        self.describe(|description| description.weight = weight);
        Ok(())
    }

    fn describe(&self, change: impl FnOnce(&mut SelfDescription)) {
        self.status.description.send_if_modified(|description| {
            let before = *description;
            change(description);
            *description != before
        });
    }

    /// Has the worker look at everything now.
    pub async fn refresh(&self) {
        // Whoever has ended has nothing to look at.
        let _ended = self.status.wishes.send(Wish::Refresh).await;
    }

    /// Serves these groups from now on, in place of those of its settings.
    pub async fn regroup(&self, groups: Vec<Group>) -> Result<(), Invalid> {
        Group::check_all(&groups)?;
        let _ended = self.status.wishes.send(Wish::Regroup(groups)).await;
        Ok(())
    }

    /// Goes by these limits and this pace of moves from now on, as
    /// [`LeaseSettings::tuned`] names them. Other settings take a restart.
    pub async fn tune(&self, settings: LeaseSettings) -> Result<(), Invalid> {
        settings.check()?;
        let _ended = self.status.wishes.send(Wish::Tune(settings.into())).await;
        Ok(())
    }

    /// Why a partition is where it is, as this worker sees it; nothing if it
    /// knows no such partition, or has ended.
    pub async fn explain(&self, key: LeaseKey) -> Option<Explained> {
        let (reply, explained) = oneshot::channel();
        let wish = Wish::Explain(key, reply);
        self.status.wishes.send(wish).await.ok()?;
        explained.await.ok().flatten()
    }

    /// Whether it has ended, stopped or by itself.
    pub fn has_ended(&self) -> bool {
        *self.status.ended.borrow()
    }

    /// What was counted and measured.
    pub fn metrics(&self) -> &ControllerMetrics {
        &self.status.metrics
    }

    /// The same in Prometheus' text form.
    pub fn render_metrics(&self) -> String {
        self.render_metrics_with(&MetricLabels::default())
    }

    /// The same with these labels besides.
    pub fn render_metrics_with(&self, labels: &MetricLabels) -> String {
        let now = crate::store::clock::boottime();
        let worker = &self.status.worker;
        self.status.metrics.render_with(worker, now, labels)
    }
}
