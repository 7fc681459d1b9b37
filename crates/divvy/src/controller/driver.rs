//! The driver: does what the machine asks for, on a thread of its own, and
//! decides nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{HookEnd, HookId, OperationId};
use divvy_core::lease::{
    Action, Ending, Event, LeaseSettings, Member, Operation, Reply, Report, TenureId,
};
use divvy_core::store::{Incarnation, LeaseKey, WorkerId};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::consumers::{Consumers, partition_of};
use super::error::ControllerError;
use super::event::{ControllerEventKind as Told, Events};
use super::operations::carry_out;
use super::status::{Owned, Status, Wish};
use super::thread::Started;
use crate::alarm::Alarm;
use crate::manager::settings::span::Span;
use crate::store::backoff::Backoff;
use crate::store::clock::boottime;
use crate::store::{Connection, Leases};

/// What waits for the driver; tasks beyond that wait themselves.
pub(super) const INPUTS_MAX: usize = 1024;
/// The driver wakes at least this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// What a worker has is shown only so often: each time costs as much as there
/// is.
const SHOW_INTERVAL: Duration = Duration::from_millis(20);
/// Delays between two tries to hear notices, or which life the store is in.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(2);
/// The life of the store is asked for this often, also without a reason.
const LIFE_INTERVAL: Duration = Duration::from_secs(5);

/// That the store fails is told again only so often, for as long as it does.
const BACKOFF_TOLD_EVERY: Duration = Duration::from_secs(5);

/// What tasks tell the driver.
#[derive(Debug)]
pub(super) enum Input {
    /// For the machine.
    Event(Event),
    /// An operation on the store came to an end.
    Answered(OperationId, Reply),
    /// The life of the store.
    Life(Incarnation),
    /// A consumer could not be started or stopped in order.
    HookFailed(HookId, String),
    /// A hook waits too long for its turn.
    HookWaits(Box<str>),
    /// The runtime that consumers run on has ended.
    RuntimeEnded,
}

/// What a driver is made of.
pub(super) struct Parts {
    pub(super) member: Member,
    pub(super) settings: LeaseSettings,
    pub(super) startup_limit: Duration,
    pub(super) worker: WorkerId,
    pub(super) store: Arc<dyn Leases>,
    pub(super) status: Arc<Status>,
    pub(super) consumers: Consumers,
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) driver: mpsc::Sender<Input>,
    pub(super) wishes: mpsc::Receiver<Wish>,
    pub(super) stop: watch::Receiver<bool>,
    pub(super) started: Option<Started>,
    pub(super) begun: Moment,
    pub(super) events: Events,
}

struct Hook {
    key: LeaseKey,
    tenure: TenureId,
    is_start: bool,
    has_begun: bool,
}

pub(super) struct Driver {
    parts: Parts,
    alarm: Alarm,
    connection: watch::Receiver<Connection>,
    /// As was last told.
    is_connected: bool,
    description: watch::Receiver<divvy_core::lease::SelfDescription>,
    drained: watch::Receiver<bool>,
    tasks: JoinSet<()>,
    /// Releases and the leave: each ends within its own timeout, and is waited
    /// for when the member ends.
    releases: JoinSet<()>,
    /// Hooks that run, or wait for their turn.
    hooks: HashMap<HookId, Hook>,
    /// Why partitions could not be started the last time.
    start_failures: BTreeMap<LeaseKey, String>,
    renewals: Vec<OperationId>,
    life_asked: Option<AbortHandle>,
    life_due: Moment,
    last_problem: Option<Box<str>>,
    is_unshown: bool,
    show_due: Moment,
    /// From the first pause until the store works again.
    is_store_failing: bool,
    /// When it was last told that the store fails, if it still does.
    backoff_told: Option<Moment>,
    stopped_at: Option<Moment>,
    /// The start took too long.
    is_start_late: bool,
    ending: Option<Ending>,
    has_lost_runtime: bool,
}

impl Driver {
    pub(super) fn new(parts: Parts) -> Self {
        let now = boottime();
        Self {
            alarm: Alarm::new(),
            connection: parts.store.connection(),
            is_connected: true,
            description: parts.status.description.subscribe(),
            drained: parts.status.drained.subscribe(),
            tasks: JoinSet::new(),
            releases: JoinSet::new(),
            hooks: HashMap::new(),
            start_failures: BTreeMap::new(),
            renewals: Vec::new(),
            life_asked: None,
            life_due: now,
            last_problem: None,
            is_unshown: true,
            show_due: now,
            is_store_failing: false,
            backoff_told: None,
            stopped_at: None,
            is_start_late: false,
            ending: None,
            has_lost_runtime: false,
            parts,
        }
    }

    /// Runs until the member has ended, and says how that went.
    pub(super) async fn run(mut self) -> Result<(), ControllerError> {
        self.tasks.spawn(listen(
            Arc::clone(&self.parts.store),
            self.parts.driver.clone(),
        ));
        self.tasks.spawn(self.parts.consumers.watch_runtime());
        // What was said before it began counts, too.
        self.drained.mark_changed();
        self.tell(Event::Start);
        self.ask_life();
        while self.ending.is_none() && !self.has_lost_runtime {
            self.step().await;
            while self.tasks.try_join_next().is_some() {}
            while self.releases.try_join_next().is_some() {}
        }
        // Nobody reads the answers any more, so that none waits to be read.
        self.parts.inputs.close();
        while self.releases.join_next().await.is_some() {}
        self.tasks.shutdown().await;
        self.show();
        self.parts.consumers.end().await;
        self.parts.events.tell(|| Told::Ended);
        let outcome = match self.ending {
            _ if self.has_lost_runtime => Err(ControllerError::Ended(
                "the runtime that it was started on has ended".into(),
            )),
            _ if self.is_start_late => Err(ControllerError::StartTimedOut {
                limit: self.parts.startup_limit,
                last: self.last_problem,
            }),
            Some(Ending::Late) => Err(ControllerError::StopTimedOut {
                limit: self.parts.settings.shutdown_timeout,
            }),
            Some(Ending::NameTaken) => {
                let name = self.parts.worker.name.as_str();
                Err(ControllerError::NameTaken(name.into()))
            }
            Some(Ending::Unfit(why)) => Err(ControllerError::Problem(why)),
            Some(Ending::InOrder) | None => Ok(()),
        };
        if let Some(started) = self.parts.started.take() {
            let ended = || ControllerError::Ended("it was stopped before it had started".into());
            let _unheard = started.send(Err(outcome.clone().err().unwrap_or_else(ended)));
        }
        outcome
    }

    async fn step(&mut self) {
        let now = boottime();
        let mut wake = now + LOOK_INTERVAL;
        if let Some(due) = self.parts.member.next_wake() {
            wake = wake.min(due);
        }
        if self.is_unshown {
            wake = wake.min(self.show_due);
        }
        tokio::select! {
            biased;
            // Whoever drops the controller wants it to stop.
            _ = self.parts.stop.changed(), if self.stopped_at.is_none() => self.stop(),
            Some(input) = self.parts.inputs.recv() => self.take(input),
            () = self.alarm.until(wake) => self.wake(),
            Ok(()) = self.connection.changed() => self.connection_changed(),
            Ok(()) = self.description.changed() => {
                let description = *self.description.borrow_and_update();
                self.tell(Event::Described(description));
            }
            Ok(()) = self.drained.changed() => {
                let wanted = *self.drained.borrow_and_update();
                self.tell(Event::DrainAsked(wanted));
            }
            Some(wish) = self.parts.wishes.recv() => self.fulfil(wish),
        }
        let is_late = boottime().since(self.parts.begun) >= self.parts.startup_limit;
        if self.parts.started.is_some() && is_late && self.stopped_at.is_none() {
            self.is_start_late = true;
            self.stop();
        }
    }

    fn fulfil(&mut self, wish: Wish) {
        match wish {
            Wish::Refresh => self.tell(Event::RefreshRequested),
            Wish::Regroup(groups) => self.tell(Event::Regrouped(groups)),
            Wish::Tune(settings) => self.tell(Event::Tuned(settings)),
            Wish::Explain(key, reply) => {
                let _unheard = reply.send(self.parts.member.explain(&key));
            }
        }
    }

    fn stop(&mut self) {
        self.stopped_at = Some(boottime());
        self.tell(Event::Stop);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Event(event) => {
                match &event {
                    Event::HookBegun(id) => {
                        if let Some(hook) = self.hooks.get_mut(id) {
                            hook.has_begun = true;
                        }
                    }
                    Event::HookEnded(id, end) => self.hook_ended(*id, *end),
                    _ => {}
                }
                self.tell(event);
            }
            Input::Answered(id, reply) => self.answered(id, reply),
            Input::Life(incarnation) => {
                self.life_asked = None;
                self.life_due = boottime() + LIFE_INTERVAL;
                self.tell(Event::Connected(incarnation));
            }
            Input::HookFailed(id, message) => self.hook_failed(id, message),
            Input::HookWaits(why) => self.problem(why),
            Input::RuntimeEnded => {
                // What runs can neither be stopped nor known to have stopped:
                // nothing is given back, and others wait for the leases.
                self.parts.consumers.void_all();
                self.has_lost_runtime = true;
            }
        }
    }

    /// Tells why a hook failed: of a start that is tried again and again, once.
    fn hook_failed(&mut self, id: HookId, message: String) {
        let Some(hook) = self.hooks.get(&id) else {
            return;
        };
        let key = hook.key.clone();
        if !hook.is_start {
            return self.problem(format!("{key} did not stop in order: {message}").into());
        }
        if self.start_failures.get(&key) == Some(&message) {
            tracing::debug!("{key} could not be started: {message}");
            return;
        }
        self.problem(format!("{key} could not be started, and is tried again: {message}").into());
        self.start_failures.insert(key, message);
    }

    fn hook_ended(&mut self, id: HookId, end: HookEnd) {
        let Some(hook) = self.hooks.remove(&id) else {
            return;
        };
        let (key, failed) = (hook.key, end == HookEnd::Failed);
        if hook.is_start && !failed {
            self.start_failures.remove(&key);
        }
        if !hook.is_start || failed {
            self.parts.consumers.forget(hook.tenure);
        }
        // A start that was not called has not failed.
        let is_told_started = hook.is_start && (hook.has_begun || !failed);
        self.parts.events.tell(|| match is_told_started {
            true => Told::Started { key, failed },
            false => Told::Stopped { key },
        });
    }

    fn answered(&mut self, id: OperationId, reply: Reply) {
        let renewal = self.renewals.iter().position(|known| *known == id);
        if let Some(at) = renewal {
            self.renewals.swap_remove(at);
        }
        if let Reply::Failed(kind, why) = &reply {
            tracing::debug!(?kind, %why, "the store");
            self.last_problem = Some(why.clone());
            if renewal.is_some() {
                let failures = &self.parts.status.metrics.renewal_failures;
                failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.tell(Event::Reply(id, reply));
    }

    fn connection_changed(&mut self) {
        let connection = self.connection.borrow_and_update().clone();
        let was_up = std::mem::replace(&mut self.is_connected, connection.up);
        if connection.up {
            self.ask_life();
            return;
        }
        let why = connection.lost_by.unwrap_or_default();
        if was_up {
            let effect = "nothing is taken or given up until it is back";
            self.problem(format!("connection to the store lost: {why}; {effect}").into());
        } else {
            self.last_problem = Some(why.into());
        }
    }

    /// Asks which life the store is in, until it answers.
    fn ask_life(&mut self) {
        let asked = self.life_asked.as_ref();
        if asked.is_some_and(|task| !task.is_finished()) {
            return;
        }
        let limit = self.parts.settings.operation_timeout;
        let (store, driver) = (Arc::clone(&self.parts.store), self.parts.driver.clone());
        self.life_due = Moment::from_origin(Duration::MAX);
        self.life_asked = Some(self.tasks.spawn(async move {
            let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
            loop {
                if let Ok(Ok(life)) = timeout(limit, store.incarnation()).await {
                    let _gone = driver.send(Input::Life(life)).await;
                    return;
                }
                sleep(backoff.delay()).await;
            }
        }));
    }

    fn tell(&mut self, event: Event) {
        // A start that has ended asks for nothing, and yet the partition is owned.
        self.is_unshown |= matches!(event, Event::HookEnded(..));
        self.parts.member.handle(boottime(), event);
        self.act();
    }

    fn wake(&mut self) {
        let now = boottime();
        self.parts.member.wake(now);
        if now >= self.life_due {
            self.ask_life();
        }
        self.act();
    }

    /// Does everything that the machine wants done.
    fn act(&mut self) {
        while let Some(action) = self.parts.member.next_action() {
            self.is_unshown |= !matches!(action, Action::Deadline { .. });
            self.act_on(action);
        }
        let now = boottime();
        if self.is_unshown && now >= self.show_due {
            self.is_unshown = false;
            self.show_due = now + SHOW_INTERVAL;
            self.show();
        }
    }

    fn act_on(&mut self, action: Action) {
        match action {
            Action::Store {
                id,
                operation,
                timeout,
            } => self.operate(id, operation, timeout),
            Action::StartPartition {
                id,
                tenure,
                key,
                token,
                until,
            } => {
                let hook = Hook {
                    key: key.clone(),
                    tenure,
                    is_start: true,
                    has_begun: false,
                };
                self.hooks.insert(id, hook);
                let metrics = &self.parts.status.metrics;
                metrics.started(key.group.as_str(), boottime());
                self.parts.events.tell(|| Told::Starting {
                    key: key.clone(),
                    tenure,
                    token,
                    until,
                });
                self.parts.consumers.start(id, tenure, key, token, until);
            }
            Action::StopPartition {
                id,
                tenure,
                key,
                reason,
                deadline,
            } => {
                let hook = Hook {
                    key: key.clone(),
                    tenure,
                    is_start: false,
                    has_begun: false,
                };
                self.hooks.insert(id, hook);
                let now = boottime();
                self.parts.status.metrics.stopped(reason, now);
                self.parts.events.tell(|| Told::Stopping { key, reason });
                let within = deadline.since(now);
                self.parts.consumers.stop(id, tenure, reason, within);
            }
            Action::Deadline { tenures, until } => {
                let keys = self.parts.consumers.deadline(&tenures, until);
                self.parts.events.tell(|| Told::Deadline { keys, until });
            }
            Action::Abort(why) => {
                self.parts.consumers.void_all();
                tracing::error!("ending the process: {why}");
                // Also where nobody listens to the log.
                eprintln!("divvy: ending the process: {why}");
                std::process::abort();
            }
            Action::Report(report) => self.report(report),
            Action::Ended(ending) => {
                self.parts.consumers.void_all();
                self.say_what_runs();
                self.ending = Some(ending);
            }
        }
    }

    fn operate(&mut self, id: OperationId, operation: Operation, limit: Duration) {
        if matches!(operation, Operation::Renew { .. }) {
            self.renewals.push(id);
        }
        let (store, driver) = (Arc::clone(&self.parts.store), self.parts.driver.clone());
        let worker = self.parts.worker.name.clone();
        let tasks = match operation {
            Operation::Release { .. } | Operation::Leave { .. } => &mut self.releases,
            _ => &mut self.tasks,
        };
        tasks.spawn(async move {
            let reply = carry_out(&*store, &worker, operation, limit).await;
            let _gone = driver.send(Input::Answered(id, reply)).await;
        });
    }

    fn report(&mut self, report: Report) {
        let status = &self.parts.status;
        let events = &self.parts.events;
        match report {
            Report::Joined => {
                tracing::info!(worker = %self.parts.worker, "takes part");
                status.joined.send_replace(true);
                events.tell(|| Told::Joined);
                if let Some(started) = self.parts.started.take() {
                    let _unheard = started.send(Ok(()));
                }
            }
            Report::SessionEnded(why) => {
                tracing::warn!(%why, "the session is over");
                status.joined.send_replace(false);
                events.tell(|| Told::SessionEnded(why));
            }
            Report::Members(members) => {
                let count = members.len() as u64;
                status.metrics.members.store(count, Ordering::Relaxed);
                status.members.send_replace(members.as_slice().into());
                events.tell(|| Told::Members(members));
            }
            Report::Groups(groups) => {
                status.groups.send_replace(groups.as_slice().into());
                events.tell(|| Told::Groups(groups));
            }
            Report::Backoff(pause) => {
                self.is_store_failing = true;
                let backoffs = &status.metrics.backoffs;
                backoffs.fetch_add(1, Ordering::Relaxed);
                let why = self.last_problem.as_deref().unwrap_or("the store failed");
                let now = boottime();
                let is_told = |told: Moment| now.since(told) < BACKOFF_TOLD_EVERY;
                // That the connection is lost is told by itself.
                let is_up = self.connection.borrow().up;
                if self.backoff_told.is_some_and(is_told) || !is_up {
                    tracing::debug!(?pause, %why, "nothing is taken or given up for a while");
                } else {
                    self.backoff_told = Some(now);
                    tracing::warn!(%why, "nothing is taken or given up for a while");
                }
                events.tell(|| Told::Backoff);
            }
            Report::Recovered => {
                self.backoff_told = None;
                self.is_store_failing = false;
                tracing::info!("the store works again");
                events.tell(|| Told::Recovered);
            }
            Report::Quarantined(left) => {
                let span = Span::rounded_up(left);
                tracing::warn!(
                    "the store is new, has restarted or lost its data: nothing is granted for \
                     {span}, in case a lease that it forgot is still in use"
                );
                events.tell(|| Told::Quarantined(left));
            }
            Report::StartFailed(_) => {
                let failures = &status.metrics.start_failures;
                failures.fetch_add(1, Ordering::Relaxed);
            }
            Report::Problem(why) => self.problem(why),
            other => tracing::debug!("{other:?}"),
        }
    }

    /// However a member ends, it does not wait for hooks for ever: what has not
    /// stopped is dropped, and its lease runs out.
    fn say_what_runs(&mut self) {
        let count = self.parts.consumers.len();
        if count > 0 {
            let left = "others take over when the leases are over";
            self.problem(
                format!("consumers that have not stopped are dropped: {count}; {left}").into(),
            );
        }
    }

    fn problem(&mut self, why: Box<str>) {
        tracing::warn!("{why}");
        self.last_problem = Some(why.clone());
        self.parts.events.tell(|| Told::Problem(why));
    }

    /// Shows what the machine knows, where that has changed.
    fn show(&self) {
        let (member, status) = (&self.parts.member, &self.parts.status);
        // Between two pauses the store is still away.
        let backoff = self.is_store_failing;
        status.backoff.store(backoff, Ordering::Relaxed);
        let metrics = &status.metrics;
        metrics.backoff.store(u64::from(backoff), Ordering::Relaxed);
        let wished = member.is_drained_by_wish();
        status.drain_wished.store(wished, Ordering::Relaxed);
        // What has not started is not owned, whatever the lease says.
        let owned: Arc<[Owned]> = member
            .held()
            .filter(|held| !held.is_starting)
            .map(|held| Owned {
                partition: partition_of(&held.key),
                token: held.token,
                since: held.since,
                is_stopping: held.stopping.is_some(),
                is_stop_unconfirmed: held.is_unconfirmed,
            })
            .collect();
        let unconfirmed = owned.iter().filter(|owned| owned.is_stop_unconfirmed);
        let unconfirmed = unconfirmed.count() as u64;
        metrics
            .unconfirmed_stops
            .store(unconfirmed, Ordering::Relaxed);
        metrics.owned.store(owned.len() as u64, Ordering::Relaxed);
        let unowned = member.unowned() as u64;
        metrics.unowned.store(unowned, Ordering::Relaxed);
        status.owned.send_if_modified(|shown| {
            let differs = *shown != owned;
            if differs {
                *shown = owned;
            }
            differs
        });
        let misaligned: Vec<_> = member.misaligned().collect();
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        for partition in &misaligned {
            *counts.entry(partition.why.as_str()).or_default() += 1;
        }
        metrics.misaligned(counts);
        status.misaligned.send_replace(misaligned.into());
    }
}

/// Hears what the store tells unasked, and says so when something may have
/// been missed.
async fn listen(store: Arc<dyn Leases>, driver: mpsc::Sender<Input>) {
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
    let mut notices = loop {
        match store.notices().await {
            Ok(notices) => break notices,
            Err(error) => {
                tracing::debug!(%error, "no notices yet");
                sleep(backoff.delay()).await;
            }
        }
    };
    loop {
        let event = Event::Noticed(notices.next().await);
        if driver.send(Input::Event(event)).await.is_err() {
            return;
        }
    }
}
