//! Hooks of partitions wait for their turn: so many start at once, and so many
//! stop.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use divvy_core::Partition;
use divvy_core::leader::{Event, HookEnd, HookId, Version};
use divvy_core::store::Token;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{Instrument as _, Span};

use super::calls::{Aborting, panic_text};
use super::driver::Input;
use super::error::ManagerError;
use super::grant::Grant;
use super::hooks::{HookError, Hooks};
use super::status::Status;
use crate::hook_limiter::{self, HookLimiter, Waiting};

type Called = Pin<Box<dyn Future<Output = Result<(), HookError>> + Send>>;

/// A call of a hook for one partition.
pub(super) struct Turn {
    pub(super) id: HookId,
    pub(super) partition: Partition,
    /// Who calls it, and because of which assignment.
    pub(super) worker: Option<Arc<str>>,
    pub(super) version: Option<Version>,
    pub(super) asked: Instant,
    /// After this it is overdue.
    pub(super) limit: Duration,
    pub(super) hook: Hook,
    /// That a start need not be called any more.
    pub(super) withdrawn: Option<oneshot::Receiver<()>>,
}

/// Which hook.
pub(super) enum Hook {
    Assigned {
        grant: Grant,
        /// Asks for its end.
        cancelled: oneshot::Receiver<()>,
    },
    Revoked {
        grant: Option<Grant>,
        /// It is over only when the batch that it belongs to is told, too.
        told: watch::Receiver<()>,
    },
}

impl Turn {
    fn name(&self) -> &'static str {
        match &self.hook {
            Hook::Assigned { .. } => "assigned",
            Hook::Revoked { .. } => "revoked",
        }
    }

    fn grant(&self) -> Option<&Grant> {
        match &self.hook {
            Hook::Assigned { grant, .. } => Some(grant),
            Hook::Revoked { grant, .. } => grant.as_ref(),
        }
    }

    fn span(&self) -> Span {
        tracing::info_span!(
            "hook",
            hook = self.name(),
            worker = self.worker.as_deref(),
            version = self.version.map(|version| version.to_string()),
            partition = self.partition.as_str(),
            token = self.grant().map(Grant::token).map(Token::get),
        )
    }
}

/// Hooks that wait for their turn or run: those that start, or those that stop.
pub(super) struct Queue {
    caller: Arc<Caller>,
    limiter: Arc<HookLimiter>,
    calls: JoinSet<()>,
}

impl Queue {
    pub(super) fn new(hook: &'static str, concurrency: usize, caller: &Arc<Caller>) -> Self {
        Self {
            caller: Arc::clone(caller),
            limiter: HookLimiter::new(hook, concurrency),
            calls: JoinSet::new(),
        }
    }

    pub(super) fn add(&mut self, turn: Turn) {
        while self.calls.try_join_next().is_some() {}
        let made = Arc::clone(&self.caller).make(turn, Arc::clone(&self.limiter));
        self.calls.spawn(made.in_current_span());
    }

    /// Nobody waits for an answer any more: whatever still runs is dropped.
    pub(super) async fn end(mut self) {
        self.calls.shutdown().await;
    }
}

/// Who calls hooks when it is their turn, and tells the driver how each ended.
pub(super) struct Caller {
    pub(super) hooks: Arc<dyn Hooks>,
    pub(super) runtime: Handle,
    pub(super) driver: mpsc::Sender<Input>,
    pub(super) status: Arc<Status>,
}

impl Caller {
    async fn make(self: Arc<Self>, mut turn: Turn, limiter: Arc<HookLimiter>) {
        let withdrawn = turn.withdrawn.take();
        let waiting = Waiting {
            partition: &turn.partition,
            since: turn.asked,
            patience: turn.limit,
            grant: turn.grant(),
        };
        // Never waited for: it is reported again.
        let report = |text: String| {
            let problem = ManagerError::Problem(text.into());
            let _full = self.driver.try_send(Input::Problem(problem));
        };
        let withdrawal = async {
            let is_withdrawn = match withdrawn {
                Some(withdrawn) => withdrawn.await.is_ok(),
                None => false,
            };
            if !is_withdrawn {
                std::future::pending::<()>().await;
            }
        };
        let permit = tokio::select! {
            biased;
            () = withdrawal => None,
            permit = limiter.turn(waiting, report) => Some(permit),
        };
        let (id, asked, grant) = (turn.id, turn.asked, turn.grant().cloned());
        let is_start = matches!(turn.hook, Hook::Assigned { .. });
        let permit = permit.filter(|_| match &turn.hook {
            Hook::Assigned { grant, .. } => limiter.may_call(grant),
            Hook::Revoked { .. } => true,
        });
        let end = match permit {
            Some(permit) => self.supervised(turn, permit).await,
            // Without having begun: the application has not failed.
            None => HookEnd::Failed,
        };
        if let Some(grant) = grant.filter(|_| !is_start || end == HookEnd::Failed) {
            grant.end();
        }
        let metrics = &self.status.metrics;
        let took = asked.elapsed().as_secs_f64();
        match is_start {
            true => metrics.start_seconds.observe(took),
            false => metrics.stop_seconds.observe(took),
        }
        // The driver is gone only when nobody waits for an answer.
        self.tell(Input::Event(Event::HookEnded(id, end))).await;
    }

    /// Calls a hook, and gives its place to others when it is overdue.
    async fn supervised(&self, turn: Turn, permit: hook_limiter::Turn) -> HookEnd {
        self.tell(Input::Event(Event::HookBegun(turn.id))).await;
        let (hook, span) = (turn.name(), turn.span());
        let (partition, limit) = (turn.partition, turn.limit);
        let (hooks, of) = (Arc::clone(&self.hooks), partition.clone());
        let (call, cancelled, told) = match turn.hook {
            Hook::Assigned { grant, cancelled } => {
                let call: Called = Box::pin(async move {
                    grant.check_before_start()?;
                    hooks.assigned(&of, grant).await
                });
                (call, Some(cancelled), None)
            }
            Hook::Revoked { told, .. } => {
                let call: Called = Box::pin(async move { hooks.revoked(&of).await });
                (call, None, Some(told))
            }
        };
        let mut called = Aborting(self.runtime.spawn(call.instrument(span)));
        let in_time = timeout(limit, &mut called).await;
        // Others have its place when it has returned or is overdue: what it is
        // waited for beyond may take any time.
        drop(permit);
        let (ended, is_cancelled) = match in_time {
            Ok(ended) => (ended, false),
            Err(_elapsed) => called.end(cancelled).await,
        };
        let message = match ended {
            Ok(Ok(())) => None,
            Err(error) if is_cancelled && error.is_cancelled() => {
                return HookEnd::Cancelled;
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) if error.is_panic() => Some(panic_text(error.into_panic().as_ref())),
            Err(_cancelled) => {
                // Nobody knows what it has done, so it has not ended.
                self.tell(Input::RuntimeEnded).await;
                std::future::pending().await
            }
        };
        if let Some(mut told) = told {
            // The sender is dropped when the call has returned.
            while told.changed().await.is_ok() {}
        }
        let Some(message) = message else {
            return HookEnd::Done;
        };
        let error = ManagerError::Hook {
            hook,
            partition: Some(partition),
            message: message.into(),
        };
        self.tell(Input::Problem(error)).await;
        HookEnd::Failed
    }

    async fn tell(&self, input: Input) {
        let _gone = self.driver.send(input).await;
    }
}
