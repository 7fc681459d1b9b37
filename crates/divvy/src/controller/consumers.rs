//! Starting and stopping consumers: on the application's runtime, watched from
//! the driver's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use divvy_core::leader::{HookEnd, HookId};
use divvy_core::lease::{Event, StopReason, TenureId};
use divvy_core::store::{LeaseKey, Token};
use divvy_core::{Moment, Partition};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::Instrument as _;

use super::consumer::{Consumer, ConsumerFactory};
use super::driver::Input;
use crate::hook_limiter::{HookLimiter, Waiting};
use crate::manager::calls::{Aborting, panic_text};
use crate::manager::grant::Authority;
use crate::manager::{Grant, HookError};

/// Where a consumer is kept between its start and its stop.
type Place = Arc<Mutex<Option<Box<dyn Consumer>>>>;

struct Tenure {
    key: LeaseKey,
    grant: Grant,
    authority: Arc<Authority>,
    consumer: Place,
}

/// A call of a hook.
struct Hook {
    id: HookId,
    is_start: bool,
    limiter: Arc<HookLimiter>,
    grant: Grant,
    /// After this it is overdue.
    limit: Duration,
}

/// All consumers.
pub(super) struct Consumers {
    factory: Arc<dyn ConsumerFactory>,
    runtime: Handle,
    starts: Arc<HookLimiter>,
    stops: Arc<HookLimiter>,
    driver: mpsc::Sender<Input>,
    start_limit: Duration,
    tenures: HashMap<TenureId, Tenure>,
    running: JoinSet<()>,
}

impl Consumers {
    pub(super) fn new(
        factory: Arc<dyn ConsumerFactory>,
        runtime: Handle,
        concurrency: usize,
        start_limit: Duration,
        driver: mpsc::Sender<Input>,
    ) -> Self {
        Self {
            factory,
            runtime,
            starts: HookLimiter::new("start", concurrency),
            stops: HookLimiter::new("stop", concurrency),
            driver,
            start_limit,
            tenures: HashMap::new(),
            running: JoinSet::new(),
        }
    }

    /// Tells the driver when the runtime that consumers run on has ended.
    pub(super) fn watch_runtime(&self) -> impl Future<Output = ()> + Send + use<> {
        let sentinel = Aborting(self.runtime.spawn(std::future::pending::<()>()));
        let driver = self.driver.clone();
        async move {
            let _cancelled = sentinel.await;
            let _gone = driver.send(Input::RuntimeEnded).await;
        }
    }

    pub(super) fn start(
        &mut self,
        id: HookId,
        tenure: TenureId,
        key: LeaseKey,
        token: Token,
        until: Moment,
    ) {
        while self.running.try_join_next().is_some() {}
        let partition = partition_of(&key);
        let authority = Arc::new(Authority::default());
        authority.set(Some(until));
        let grant = Grant::new(partition.clone(), token, &authority);
        let consumer = Place::default();
        let (factory, given) = (Arc::clone(&self.factory), grant.clone());
        let place = Arc::clone(&consumer);
        let span = tracing::info_span!(
            "consumer",
            hook = "start",
            partition = partition.as_str(),
            token = token.get()
        );
        let call = async move {
            given.check_before_start()?;
            let started = factory.start(&partition, given).await?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
            Ok(())
        };
        let hook = Hook {
            id,
            is_start: true,
            limiter: Arc::clone(&self.starts),
            grant: grant.clone(),
            limit: self.start_limit,
        };
        self.call(hook, call.instrument(span));
        let entry = Tenure {
            key,
            grant,
            authority,
            consumer,
        };
        self.tenures.insert(tenure, entry);
    }

    pub(super) fn stop(
        &mut self,
        id: HookId,
        tenure: TenureId,
        reason: StopReason,
        within: Duration,
    ) {
        let Some(Tenure {
            key,
            grant,
            consumer,
            ..
        }) = self.tenures.get(&tenure)
        else {
            return;
        };
        grant.revoke();
        let consumer = Arc::clone(consumer);
        let span = tracing::info_span!("consumer", hook = "stop", partition = %key, token = grant.token().get());
        let call = async move {
            let consumer = consumer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            match consumer {
                Some(consumer) => consumer.stop(reason).await,
                None => Ok(()),
            }
        };
        let hook = Hook {
            id,
            is_start: false,
            limiter: Arc::clone(&self.stops),
            grant: grant.clone(),
            limit: within,
        };
        self.call(hook, call.instrument(span));
    }

    /// The grants of these are current until then; nothing ends them for good.
    pub(super) fn deadline(&self, tenures: &[TenureId], until: Option<Moment>) -> Vec<LeaseKey> {
        let known = tenures.iter().filter_map(|id| self.tenures.get(id));
        known
            .map(|tenure| {
                tenure.authority.set(until);
                tenure.key.clone()
            })
            .collect()
    }

    /// A tenure is over.
    pub(super) fn forget(&mut self, tenure: TenureId) {
        if let Some(tenure) = self.tenures.remove(&tenure) {
            tenure.grant.end();
        }
    }

    /// How many have not stopped.
    pub(super) fn len(&self) -> usize {
        self.tenures.len()
    }

    /// Ends all grants, whatever still runs.
    pub(super) fn void_all(&self) {
        for tenure in self.tenures.values() {
            tenure.authority.set(None);
            tenure.grant.end();
        }
    }

    /// Whatever still runs is dropped.
    pub(super) async fn end(mut self) {
        self.void_all();
        self.running.shutdown().await;
    }

    /// A call that waits for its turn, and gives its place to others when it
    /// is overdue.
    fn call<F>(&mut self, hook: Hook, call: F)
    where
        F: Future<Output = Result<(), HookError>> + Send + 'static,
    {
        let (runtime, driver) = (self.runtime.clone(), self.driver.clone());
        let asked = Instant::now();
        self.running.spawn(async move {
            let (id, limit) = (hook.id, hook.limit);
            let waiting = Waiting {
                partition: hook.grant.partition(),
                since: asked,
                patience: limit,
                grant: Some(&hook.grant),
            };
            // Never waited for: it is reported again.
            let report = |text: String| {
                let _full = driver.try_send(Input::HookWaits(text.into()));
            };
            let turn = hook.limiter.turn(waiting, report).await;
            if hook.is_start && !hook.limiter.may_call(&hook.grant) {
                // Without having begun: the application has not failed.
                let ended = Event::HookEnded(id, HookEnd::Failed);
                let _gone = driver.send(Input::Event(ended)).await;
                return;
            }
            let _gone = driver.send(Input::Event(Event::HookBegun(id))).await;
            let mut called = Aborting(runtime.spawn(call));
            let ended = match timeout(limit, &mut called).await {
                Ok(ended) => ended,
                Err(_elapsed) => {
                    drop(turn);
                    (&mut called).await
                }
            };
            let message = match ended {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) if error.is_panic() => Some(panic_text(error.into_panic().as_ref())),
                Err(_cancelled) => {
                    // Nobody knows what it has done, so it has not ended.
                    let _gone = driver.send(Input::RuntimeEnded).await;
                    std::future::pending().await
                }
            };
            let end = match message {
                None => HookEnd::Done,
                Some(message) => {
                    let _gone = driver.send(Input::HookFailed(id, message)).await;
                    HookEnd::Failed
                }
            };
            let _gone = driver.send(Input::Event(Event::HookEnded(id, end))).await;
        });
    }
}

/// A lease's partition, in the words of placement.
pub(super) fn partition_of(key: &LeaseKey) -> Partition {
    Partition::shard(key.group.as_str(), key.number)
        .expect("a group's name is checked to be a segment")
}
