//! The driver: does what the machine asks for, on a thread of its own, and
//! decides nothing.

mod link;
mod pace;
mod report;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use divvy_core::leader::{
    Action, Clock, Event, HookEnd, HookId, LeaderSettings, Member, OperationId, Reply, Shutdown,
    Wait, Watched,
};
use divvy_core::store::{Change, Incarnation, StoreError};
use divvy_core::{Moment, Partition};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tracing::{Instrument as _, Span};

use self::pace::Pace;
use super::agent::Agent;
use super::calls::Calls;
use super::discovery::Discovery;
use super::error::ManagerError;
use super::event::{EventKind, Events};
use super::grant::Authority;
use super::retry::Retry;
use super::startup::Startup;
use super::status::{Status, Wish};
use super::suspend::Suspends;
use crate::alarm::Alarm;
use crate::store::clock::{boottime, unix_ms};
use crate::store::{Connection, KeyValue};

/// What waits for the driver; tasks beyond that wait themselves.
pub(super) const INPUTS_MAX: usize = 1024;
/// The driver looks at its clocks at least this often, to notice a suspend.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The life of the store is asked for every so many polls of the root: one
/// that is deleted and made anew may not cost a connection.
const LIFE_POLLS: u32 = 4;

/// What tasks tell the driver.
#[derive(Debug)]
pub(super) enum Input {
    /// For the machine.
    Event(Event),
    /// An operation on the store came to an end, on this connection.
    Answered(OperationId, Reply, Option<StoreError>, Option<u64>),
    /// A watch saw a change, on this connection.
    Seen(Change, Option<u64>),
    /// The life of the store on this connection.
    Life(Incarnation, u64),
    /// Something of the store may have been missed.
    Doubt,
    /// The store does not do what it should.
    Trouble(StoreError),
    /// The source of partitions may have others.
    SourceChanged,
    /// The source of partitions failed, and is asked again.
    SourceFailed(String),
    /// Something for the hook for errors.
    Problem(ManagerError),
    /// The hook for errors itself failed.
    HookFailed(ManagerError),
    /// The runtime that hooks are called on has ended.
    RuntimeEnded,
}

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) member: Member,
    pub(super) settings: LeaderSettings,
    pub(super) retry: Retry,
    pub(super) store: Arc<dyn KeyValue>,
    pub(super) status: Arc<Status>,
    pub(super) authority: Arc<Authority>,
    pub(super) calls: Calls,
    pub(super) discovery: Discovery,
    pub(super) agent: Option<Agent>,
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) driver: mpsc::Sender<Input>,
    pub(super) wishes: mpsc::Receiver<Wish>,
    pub(super) stop: watch::Receiver<Option<Shutdown>>,
    pub(super) default_shutdown: Shutdown,
    pub(super) startup: Startup,
    pub(super) events: Events,
}

pub(super) struct Driver {
    parts: Parts,
    alarm: Alarm,
    connection: watch::Receiver<Connection>,
    /// As was last told.
    is_connected: bool,
    description: watch::Receiver<divvy_core::leader::SelfDescription>,
    tasks: JoinSet<()>,
    /// Leadership that is being given up, which is let finish.
    releases: JoinSet<()>,
    watches: Vec<(Watched, AbortHandle)>,
    /// Writes of the own record that are under way.
    heartbeats: Vec<OperationId>,
    /// Hooks that run: of which partition, and whether they start it.
    hooks: HashMap<HookId, (Partition, bool)>,
    life_asked: Option<AbortHandle>,
    life_due: Moment,
    /// Not before then is it asked for because of something unfit.
    unfit_due: Moment,
    /// Why the store last refused something, and when that is told again.
    refusal: Option<(String, Moment)>,
    suspends: Suspends,
    state_since: Moment,
    stopped_at: Option<Moment>,
    last_trouble: Option<StoreError>,
    /// What a start that takes too long may be waiting for.
    last_problem: Option<Box<str>>,
    /// What is logged belongs to the manager, and to its last session.
    manager_span: Span,
    session_span: Span,
    /// What was last logged that the first grants wait for.
    waits_for: Option<Wait>,
    /// No renewal is acknowledged, as the machine has told.
    is_lease_running_out: bool,
    showing: Pace,
    has_lost_runtime: bool,
    is_over: bool,
}

impl Driver {
    pub(super) fn new(parts: Parts) -> Self {
        let now = boottime();
        Self {
            alarm: Alarm::new(),
            connection: parts.store.connection(),
            is_connected: true,
            description: parts.status.description.subscribe(),
            tasks: JoinSet::new(),
            releases: JoinSet::new(),
            watches: Vec::new(),
            heartbeats: Vec::new(),
            hooks: HashMap::new(),
            life_asked: None,
            life_due: now,
            unfit_due: now,
            refusal: None,
            suspends: Suspends::default(),
            state_since: now,
            stopped_at: None,
            last_trouble: None,
            last_problem: None,
            manager_span: Span::current(),
            session_span: Span::current(),
            waits_for: None,
            is_lease_running_out: false,
            showing: Pace::new(now),
            has_lost_runtime: false,
            is_over: false,
            parts,
        }
    }

    /// Runs until the member has ended, and says how that went.
    pub(super) async fn run(mut self) -> Result<(), ManagerError> {
        self.tell(Event::Start);
        self.ask_life();
        let following = self.parts.discovery.follow(self.parts.driver.clone());
        self.tasks.spawn(following);
        self.tasks.spawn(self.parts.calls.watch_runtime());
        while !self.is_over {
            let span = self.session_span.clone();
            self.step().instrument(span).await;
            while self.tasks.try_join_next().is_some() {}
            while self.releases.try_join_next().is_some() {}
        }
        self.tasks.shutdown().await;
        self.finish_releases().await;
        let limit = self.parts.settings.shutdown_timeout;
        let late = self
            .stopped_at
            .is_some_and(|since| boottime().since(since) >= limit);
        self.show();
        // One deadline for all: whoever stops waits no longer than that.
        let last_calls = self.parts.settings.stop_deadline.min(self.time_left());
        self.parts.calls.end(last_calls).await;
        self.parts.events.tell(|| EventKind::Ended);
        self.parts.startup.ended();
        if self.has_lost_runtime {
            let why = "the runtime that it was started on has ended";
            return Err(ManagerError::Ended(why.into()));
        }
        match late {
            true => Err(ManagerError::StopTimedOut { limit }),
            false => Ok(()),
        }
    }

    /// Lets leadership be given up, for as long as stopping may take: who leads
    /// next may have to wait for it.
    async fn finish_releases(&mut self) {
        if self.has_lost_runtime {
            return;
        }
        let left = self.time_left();
        let finished = async { while self.releases.join_next().await.is_some() {} };
        let _late = timeout(left, finished).await;
        self.releases.shutdown().await;
        while let Ok(input) = self.parts.inputs.try_recv() {
            if let Input::Problem(error @ ManagerError::ElectionFailed(_)) = input {
                self.problem(error);
            }
        }
    }

    /// How long a stop that is under way may still take.
    fn time_left(&self) -> Duration {
        let now = boottime();
        let begun = self.stopped_at.unwrap_or(now);
        (begun + self.parts.settings.shutdown_timeout).since(now)
    }

    async fn step(&mut self) {
        let now = boottime();
        let mut wake = now + LOOK_INTERVAL;
        if let Some(due) = self.parts.member.next_wake() {
            wake = wake.min(due);
        }
        if let Some(due) = self.showing.due() {
            wake = wake.min(due);
        }
        tokio::select! {
            biased;
            changed = self.parts.stop.changed(), if self.stopped_at.is_none() => {
                // Whoever drops the manager wants it to leave.
                let how = changed.ok().and_then(|()| *self.parts.stop.borrow());
                self.stop(how.unwrap_or(self.parts.default_shutdown));
            }
            Some(input) = self.parts.inputs.recv() => self.take(input),
            () = self.alarm.until(wake) => self.wake(),
            Ok(()) = self.connection.changed() => self.connection_changed(),
            Ok(()) = self.description.changed() => {
                let description = self.description.borrow_and_update().clone();
                self.tell(Event::Described(description));
            }
            Some(wish) = self.parts.wishes.recv() => self.fulfil(wish),
        }
        self.watch_start();
    }

    fn fulfil(&mut self, wish: Wish) {
        match wish {
            Wish::Refresh => self.tell(Event::RefreshRequested),
            Wish::Holder(partition, reply) => {
                let _unheard = reply.send(self.parts.member.holder_of(&partition));
            }
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Event(event) => {
                match &event {
                    Event::Partitions(_) => self.parts.discovery.answered(),
                    Event::HookEnded(id, end) => self.hook_ended(*id, *end),
                    _ => {}
                }
                self.tell(event);
            }
            Input::Answered(id, reply, error, connection) => {
                self.answered(id, reply, error, connection);
            }
            Input::Seen(change, connection) => self.hear(connection, Event::Seen(change)),
            Input::Life(incarnation, connects) => {
                self.life_asked = None;
                if self.parts.store.connects() != connects {
                    // It was asked of a connection that is gone.
                    return self.ask_life();
                }
                let patience = self.parts.settings.root_poll_interval * LIFE_POLLS;
                self.life_due = boottime() + patience;
                self.hear(Some(connects), Event::Connected(incarnation));
            }
            Input::Doubt => {
                self.tell(Event::Missed);
                self.ask_life();
            }
            Input::Trouble(error) => self.trouble(error),
            Input::Problem(error) => {
                self.count_hook(&error);
                self.problem(error);
            }
            Input::SourceChanged => {
                // Whoever begins to lead reads the source anyway.
                if self.parts.member.is_leader() {
                    self.tell(Event::RefreshRequested);
                }
            }
            Input::SourceFailed(why) => {
                self.last_problem = Some(format!("the source of partitions failed: {why}").into());
            }
            Input::HookFailed(error) => {
                self.count_hook(&error);
                tracing::warn!("{error}");
            }
            Input::RuntimeEnded => {
                // What runs can neither be stopped nor known to have stopped:
                // nothing is said to have, and others wait for the lease.
                self.parts.authority.set(None);
                self.has_lost_runtime = true;
                self.is_over = true;
            }
        }
    }

    fn hook_ended(&mut self, id: HookId, end: HookEnd) {
        let Some((partition, is_start)) = self.hooks.remove(&id) else {
            return;
        };
        self.parts.calls.ended(id);
        let failed = end == HookEnd::Failed;
        // Also where nothing follows from it, as while the store is away.
        self.showing.want();
        self.parts.events.tell(|| match is_start {
            true => EventKind::Started { partition, failed },
            false => EventKind::Stopped { partition },
        });
    }

    fn count_hook(&self, error: &ManagerError) {
        if matches!(error, ManagerError::Hook { .. }) {
            let failures = &self.parts.status.metrics.hook_failures;
            failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn stop(&mut self, how: Shutdown) {
        if self.stopped_at.is_none() {
            self.stopped_at = Some(boottime());
            self.tell(Event::Stop(how));
        }
    }

    /// A start that takes too long is over, and leaves nothing behind.
    fn watch_start(&mut self) {
        let parts = &mut self.parts;
        let failed = parts
            .startup
            .look(boottime(), &parts.member, &parts.settings, || {
                let waits = parts.status.waits_for.get();
                let problem = self.last_problem.clone();
                let problem = problem.or_else(|| waits.map(|why| (&*why).into()));
                (self.last_trouble.clone(), problem)
            });
        if failed && self.stopped_at.is_none() {
            self.stop(Shutdown::Leave);
        }
    }

    fn tell(&mut self, event: Event) {
        let clock = self.clock();
        self.parts.member.handle(clock, event);
        self.act();
    }

    /// Hands over what came from the store. In which life that is, is asked for
    /// where it came on a connection that the machine does not know.
    fn hear(&mut self, connection: Option<u64>, event: Event) {
        let clock = self.clock();
        self.parts.member.hear(clock, connection, event);
        self.act();
        if self.parts.member.connection() != Some(self.parts.store.connects()) {
            self.ask_life();
        }
    }

    fn wake(&mut self) {
        let clock = self.clock();
        self.parts.member.wake(clock);
        if clock.now >= self.life_due {
            self.ask_life();
        }
        self.act();
    }

    /// The clocks now. Whatever is told after a suspend, is told after that.
    fn clock(&mut self) -> Clock {
        let is_suspended = self.suspends.look();
        let clock = Clock {
            now: boottime(),
            unix_ms: unix_ms(),
        };
        if is_suspended {
            tracing::warn!("the machine was suspended");
            self.parts.member.handle(clock, Event::Suspended);
        }
        clock
    }

    /// Does everything that the machine wants done.
    fn act(&mut self) {
        let mut shown = false;
        while let Some(action) = self.parts.member.next_action() {
            shown |= matches!(action, Action::Report(_));
            self.act_on(action);
        }
        self.log_wait();
        let is_working = !self.parts.member.is_idle();
        let status = &self.parts.status;
        status.is_working.store(is_working, Ordering::Relaxed);
        let has_changed = self.parts.calls.finish_batch();
        if has_changed {
            let changes = &self.parts.status.metrics.assignment_changes;
            changes.fetch_add(1, Ordering::Relaxed);
        }
        if has_changed || shown {
            self.showing.want();
        }
        let now = boottime();
        if self.showing.is_due(now) {
            let owned = self.show();
            self.showing.shown(now, boottime(), owned);
        }
    }

    fn act_on(&mut self, action: Action) {
        match action {
            Action::Store {
                id,
                operation,
                timeout,
            } => self.operate(id, operation, timeout),
            Action::Watch(keys) => self.watch(&keys),
            Action::ListPartitions => {
                if let Some(listing) = self.parts.discovery.ask(&self.parts.driver) {
                    self.tasks.spawn(listing);
                }
            }
            Action::StartPartition {
                id,
                partition,
                token,
            } => {
                self.hooks.insert(id, (partition.clone(), true));
                self.parts.events.tell(|| EventKind::Assigned {
                    partition: partition.clone(),
                    token,
                });
                self.parts.calls.start(id, partition, token);
            }
            Action::CancelStart(id) => self.parts.calls.cancel(id),
            Action::WithdrawStart(id) => self.parts.calls.withdraw(id),
            Action::StopPartition {
                id,
                partition,
                deadline,
            } => {
                self.hooks.insert(id, (partition.clone(), false));
                self.parts.events.tell(|| EventKind::Revoked {
                    partition: partition.clone(),
                });
                let within = deadline.since(boottime());
                self.parts.calls.stop(id, partition, within);
            }
            Action::Deadline(until) => self.deadline(until),
            Action::RequestLeadership => {
                let worker = self.parts.member.worker_id().map(Arc::from);
                if let (Some(agent), Some(worker)) = (&mut self.parts.agent, worker) {
                    self.tasks.spawn(agent.request(worker));
                }
            }
            Action::ReleaseLeadership => {
                if let Some(agent) = &mut self.parts.agent {
                    self.releases.spawn(agent.release());
                }
            }
            Action::Abort(why) => abort(&self.parts.authority, &why),
            Action::Report(report) => self.report(report),
            Action::Ended => {
                self.parts.authority.set(None);
                self.is_over = true;
            }
        }
    }
}

/// Work that cannot be stopped may go on, and nothing else would end it.
fn abort(authority: &Authority, why: &str) -> ! {
    authority.set(None);
    tracing::error!("ending the process: {why}");
    // Also where nobody listens to the log.
    eprintln!("divvy: ending the process: {why}");
    std::process::abort();
}
