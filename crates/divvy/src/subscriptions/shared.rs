//! What all partitions of one subscription share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use divvy_core::store::StoreError;
use tokio::sync::Semaphore;

use super::handler::Handler;
use super::jetstream::{JetStream, StreamInfo};
use super::metrics::SubscriptionMetrics;
use super::policy::Policy;
use super::settings::{Retention, SubscriptionSettings};

/// Of the interval, how much a single look may be early: many partitions are
/// not all looked at in the same moment.
const JITTER: f64 = 0.25;

pub(super) struct Shared {
    pub(super) jetstream: Arc<JetStream>,
    pub(super) settings: SubscriptionSettings,
    pub(super) policy: Policy,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) metrics: SubscriptionMetrics,
    /// How often the server says that it has nothing.
    pub(super) heartbeat: Duration,
    replicas: u8,
    stream: Mutex<StreamInfo>,
}

impl Shared {
    /// Makes or checks the streams.
    pub(super) async fn open(
        jetstream: JetStream,
        settings: SubscriptionSettings,
        handler: Arc<dyn Handler>,
        heartbeat: Duration,
        replicas: u8,
    ) -> Result<Self, StoreError> {
        let stream = jetstream.stream(&settings, replicas).await?;
        jetstream.dead_letters(&settings, replicas).await?;
        Ok(Self {
            jetstream: Arc::new(jetstream),
            policy: Policy::new(&settings),
            handler,
            permits: Arc::new(Semaphore::new(settings.max_handlers)),
            metrics: SubscriptionMetrics::default(),
            heartbeat,
            replicas,
            stream: Mutex::new(stream),
            settings,
        })
    }

    /// When the stream forgets messages.
    pub(super) fn retention(&self) -> Retention {
        self.known().config.retention
    }

    /// Which stream it is, by the time that it was made, as seen last.
    pub(super) fn stream(&self) -> String {
        self.known().created.clone()
    }

    /// Looks which stream it is, and makes it again if it is gone.
    pub(super) async fn look_at_stream(&self) -> Result<String, StoreError> {
        let info = self.jetstream.stream(&self.settings, self.replicas).await?;
        let created = info.created.clone();
        *self.known() = info;
        Ok(created)
    }

    /// Refuses a subject that the stream does not take, as seen last.
    pub(super) fn check_subject(&self, subject: &str) -> Result<(), StoreError> {
        self.jetstream.check_subject(&self.known(), subject)
    }

    /// How long until a consumer is looked at again.
    pub(super) fn reconcile_delay(&self) -> Duration {
        let early = JITTER * fastrand::f64();
        self.settings.reconcile_interval.mul_f64(1.0 - early)
    }

    fn known(&self) -> MutexGuard<'_, StreamInfo> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
