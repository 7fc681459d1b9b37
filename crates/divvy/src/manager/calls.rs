//! Calling hooks: on the application's runtime, watched from the driver's.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use divvy_core::Partition;
use divvy_core::leader::{HookId, State, Version};
use divvy_core::store::Token;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::Instrument as _;

use super::driver::Input;
use super::error::ManagerError;
use super::grant::{Authority, Grant};
use super::hooks::{HookError, Hooks};
use super::settings::Settings;
use super::status::Status;
use super::turns::{Caller, Hook, Queue as HookQueue, Turn};

/// Calls that wait for the ones before them; beyond, those that only tell are
/// left out.
const WAITING_MAX: usize = 1024;

/// Of the time that a hook may take, the part that a hand-over waits for those
/// before it that only tell.
const TELLING: u32 = 4;

type Called<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Calls hooks, and tells the driver how each ended.
pub(super) struct Calls {
    runtime: Handle,
    authority: Arc<Authority>,
    driver: mpsc::Sender<Input>,
    status: Arc<Status>,
    limits: Limits,
    /// The assignment in force: what is shown of it may be older.
    version: Option<Version>,
    /// Stops have a queue of their own: they never wait for starts.
    start_queue: HookQueue,
    stop_queue: HookQueue,
    grants: HashMap<Box<str>, Grant>,
    starts: HashMap<HookId, Start>,
    serial: mpsc::UnboundedSender<Serial>,
    waiting: Arc<AtomicUsize>,
    line: JoinHandle<()>,
    batch: Batch,
}

/// A start that waits for its turn or runs.
struct Start {
    /// Asks for its end.
    cancel: oneshot::Sender<()>,
    /// Says that it need not be called any more.
    withdraw: Option<oneshot::Sender<()>>,
}

/// How long hooks may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) concurrency: usize,
    pub(super) start: Duration,
    pub(super) stop: Duration,
}

impl Limits {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            concurrency: settings.hook_concurrency,
            start: settings.leader.start_deadline,
            stop: settings.leader.stop_deadline,
        }
    }
}

/// A call that waits for those before it.
enum Serial {
    AssignmentChanged {
        added: Vec<Partition>,
        removed: Vec<Partition>,
        /// Dropped when it has returned.
        _done: watch::Sender<()>,
    },
    StateChanged(State, State),
    LeadershipChanged(bool),
    Error(ManagerError),
}

/// What is started and stopped by one step of the machine.
struct Batch {
    added: Vec<Partition>,
    removed: Vec<Partition>,
    done: watch::Sender<()>,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            added: Vec::new(),
            removed: Vec::new(),
            done: watch::Sender::new(()),
        }
    }
}

impl Calls {
    pub(super) fn new(
        hooks: Arc<dyn Hooks>,
        runtime: Handle,
        limits: Limits,
        authority: Arc<Authority>,
        driver: mpsc::Sender<Input>,
        status: Arc<Status>,
    ) -> Self {
        let (serial, calls) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let caller = Arc::new(Caller {
            hooks: Arc::clone(&hooks),
            runtime: runtime.clone(),
            driver: driver.clone(),
            status: Arc::clone(&status),
        });
        let line = Line {
            hooks,
            runtime: runtime.clone(),
            limit: limits.stop,
            waiting: Arc::clone(&waiting),
            driver: driver.clone(),
        };
        Self {
            runtime,
            authority,
            driver,
            status,
            limits,
            version: None,
            start_queue: HookQueue::new("start", limits.concurrency, &caller),
            stop_queue: HookQueue::new("stop", limits.concurrency, &caller),
            grants: HashMap::new(),
            starts: HashMap::new(),
            serial,
            waiting,
            line: tokio::spawn(line.run(calls).in_current_span()),
            batch: Batch::default(),
        }
    }

    /// Tells the driver when the runtime that hooks are called on has ended.
    pub(super) fn watch_runtime(&self) -> impl Future<Output = ()> + Send + use<> {
        let sentinel = Aborting(self.runtime.spawn(std::future::pending::<()>()));
        let driver = self.driver.clone();
        async move {
            let _cancelled = sentinel.await;
            let _gone = driver.send(Input::RuntimeEnded).await;
        }
    }

    /// From now on, hooks are called because of this assignment.
    pub(super) fn adopted(&mut self, version: Version) {
        self.version = Some(version);
    }

    pub(super) fn start(&mut self, id: HookId, partition: Partition, token: Token) {
        let grant = Grant::new(partition.clone(), token, &self.authority);
        self.grants.insert(partition.as_str().into(), grant.clone());
        self.batch.added.push(partition.clone());
        let (cancel, cancelled) = oneshot::channel();
        let (withdraw, withdrawn) = oneshot::channel();
        let withdraw = Some(withdraw);
        self.starts.insert(id, Start { cancel, withdraw });
        let hook = Hook::Assigned { grant, cancelled };
        let mut turn = self.turn(id, partition, self.limits.start, hook);
        turn.withdrawn = Some(withdrawn);
        self.start_queue.add(turn);
    }

    /// Ends a start hook, if it is still under way and lets go of its thread.
    pub(super) fn cancel(&mut self, id: HookId) {
        if let Some(start) = self.starts.remove(&id) {
            // It may have ended meanwhile.
            let _ended = start.cancel.send(());
        }
    }

    /// Ends a start hook that still waits for its turn. One that runs goes on, and
    /// its grant with it.
    pub(super) fn withdraw(&mut self, id: HookId) {
        let start = self.starts.get_mut(&id);
        if let Some(withdraw) = start.and_then(|start| start.withdraw.take()) {
            let _begun = withdraw.send(());
        }
    }

    /// A hook has ended.
    pub(super) fn ended(&mut self, id: HookId) {
        self.starts.remove(&id);
    }

    pub(super) fn stop(&mut self, id: HookId, partition: Partition, within: Duration) {
        let grant = self.grants.remove(partition.as_str());
        if let Some(grant) = &grant {
            grant.revoke();
        }
        self.batch.removed.push(partition.clone());
        let told = self.batch.done.subscribe();
        let turn = self.turn(id, partition, within, Hook::Revoked { grant, told });
        self.stop_queue.add(turn);
    }

    fn turn(&self, id: HookId, partition: Partition, limit: Duration, hook: Hook) -> Turn {
        Turn {
            id,
            partition,
            worker: self.status.worker_id.get(),
            version: self.version,
            asked: Instant::now(),
            limit,
            hook,
            withdrawn: None,
        }
    }

    /// The step of the machine is done: what it started and stopped becomes
    /// one call. Whether there was anything.
    pub(super) fn finish_batch(&mut self) -> bool {
        if self.batch.added.is_empty() && self.batch.removed.is_empty() {
            return false;
        }
        let batch = std::mem::take(&mut self.batch);
        self.enqueue(Serial::AssignmentChanged {
            added: batch.added,
            removed: batch.removed,
            _done: batch.done,
        });
        true
    }

    pub(super) fn state_changed(&self, from: State, to: State) {
        self.tell(Serial::StateChanged(from, to));
    }

    pub(super) fn leadership_changed(&self, is_leader: bool) {
        self.tell(Serial::LeadershipChanged(is_leader));
    }

    pub(super) fn error(&self, error: ManagerError) {
        tracing::warn!("{error}");
        self.tell(Serial::Error(error));
    }

    /// A call that may be left out, should those before it hang.
    fn tell(&self, call: Serial) {
        if self.waiting.load(Ordering::Relaxed) < WAITING_MAX {
            self.enqueue(call);
        } else {
            let lost = &self.status.metrics.calls_lost;
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enqueue(&self, call: Serial) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // The line ends only when this does.
        let _ended = self.serial.send(call);
    }

    /// The last calls are made, for at most `limit`; whatever still runs then
    /// is dropped.
    pub(super) async fn end(self, limit: Duration) {
        let Self {
            serial,
            mut line,
            start_queue,
            stop_queue,
            grants,
            ..
        } = self;
        for grant in grants.values() {
            grant.end();
        }
        drop(serial);
        if timeout(limit, &mut line).await.is_err() {
            line.abort();
        }
        start_queue.end().await;
        stop_queue.end().await;
    }
}

/// A task that ends with whoever waits for it.
pub(crate) struct Aborting<T>(pub(crate) JoinHandle<T>);

impl<T> Aborting<T> {
    /// How it ends, by itself or because it was asked to; and which of both.
    pub(super) async fn end(
        &mut self,
        asked: Option<oneshot::Receiver<()>>,
    ) -> (Result<T, JoinError>, bool) {
        if let Some(asked) = asked {
            tokio::select! {
                ended = &mut *self => return (ended, false),
                asked = asked => if asked.is_ok() {
                    self.0.abort();
                    return (self.await, true);
                },
            }
        }
        (self.await, false)
    }
}

impl<T> Future for Aborting<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes calls one after another.
struct Line {
    hooks: Arc<dyn Hooks>,
    runtime: Handle,
    limit: Duration,
    waiting: Arc<AtomicUsize>,
    driver: mpsc::Sender<Input>,
}

/// Calls in a line, and since when one of them is waited for by a hand-over.
struct Queue {
    incoming: mpsc::UnboundedReceiver<Serial>,
    waiting: VecDeque<(Serial, Instant)>,
}

impl Queue {
    async fn next(&mut self) -> Option<Serial> {
        if self.waiting.is_empty() {
            self.arrive().await?;
        }
        self.waiting.pop_front().map(|(call, _)| call)
    }

    /// Waits for one more.
    async fn arrive(&mut self) -> Option<()> {
        let call = self.incoming.recv().await?;
        self.waiting.push_back((call, Instant::now()));
        Some(())
    }

    /// Since when a hand-over waits for its turn, if one does.
    fn urgent_since(&self) -> Option<Instant> {
        let is_urgent = |call: &Serial| matches!(call, Serial::AssignmentChanged { .. });
        let mut urgent = self.waiting.iter().filter(|(call, _)| is_urgent(call));
        urgent.next().map(|(_, since)| *since)
    }
}

impl Line {
    async fn run(self, incoming: mpsc::UnboundedReceiver<Serial>) {
        let mut queue = Queue {
            incoming,
            waiting: VecDeque::new(),
        };
        while let Some(call) = queue.next().await {
            self.make(call, &mut queue).await;
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn make(&self, call: Serial, queue: &mut Queue) {
        let hooks = Arc::clone(&self.hooks);
        let (name, is_bounded) = match &call {
            Serial::AssignmentChanged { .. } => ("assignment_changed", false),
            Serial::StateChanged(..) => ("state_changed", true),
            Serial::LeadershipChanged(_) => ("leadership_changed", true),
            Serial::Error(_) => ("error", true),
        };
        let made: Called<Result<(), HookError>> = Box::pin(async move {
            match call {
                Serial::AssignmentChanged {
                    added,
                    removed,
                    _done,
                } => hooks.assignment_changed(&added, &removed).await?,
                Serial::StateChanged(from, to) => hooks.state_changed(from, to).await,
                Serial::LeadershipChanged(is_leader) => hooks.leadership_changed(is_leader).await,
                Serial::Error(error) => hooks.error(&error).await,
            }
            Ok(())
        });
        let span = tracing::info_span!("hook", hook = name);
        let mut called = Aborting(self.runtime.spawn(made.instrument(span)));
        let ended = match self.within_limit(&mut called, is_bounded, queue).await {
            Some(ended) => ended,
            None => {
                tracing::warn!("hook {name} takes too long");
                if is_bounded {
                    called.0.abort();
                }
                // Calls never overlap: also what is ended has to have ended.
                (&mut called).await
            }
        };
        let message = match ended {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) if error.is_panic() => panic_text(error.into_panic().as_ref()),
            Err(_cancelled) => "it took too long, and was ended".to_owned(),
        };
        let error = ManagerError::Hook {
            hook: name,
            partition: None,
            message: message.into(),
        };
        // A failure of the hook for errors must not come back to it.
        let input = match name {
            "error" => Input::HookFailed(error),
            _ => Input::Problem(error),
        };
        // Never waited for: the driver may be waiting for this.
        let _full = self.driver.try_send(input);
    }

    /// How a call ended, unless it takes too long. All those together that only
    /// tell, and that a hand-over waits behind, have a part of the time.
    async fn within_limit<T>(
        &self,
        called: &mut Aborting<T>,
        is_bounded: bool,
        queue: &mut Queue,
    ) -> Option<Result<T, JoinError>> {
        let limit = Instant::now() + self.limit;
        let mut is_open = true;
        loop {
            let urgent = queue.urgent_since().filter(|_| is_bounded);
            let until = urgent.map_or(limit, |since| limit.min(since + self.limit / TELLING));
            tokio::select! {
                biased;
                ended = &mut *called => return Some(ended),
                arrived = queue.arrive(), if is_open => is_open = arrived.is_some(),
                () = sleep_until(until) => return None,
            }
        }
    }
}

/// What a panic said.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}
