//! Where events, replies and timers go, and what follows from all of them.

use std::sync::Arc;
use std::time::Duration;

use super::Member;
use super::leading::Stage;
use super::operations::Purpose;
use super::timers::Timer;
use crate::leader::action::{Action, Operation, Report, Watched};
use crate::leader::event::{Clock, Event, Reply, SelfDescription};
use crate::leader::record::{Lifecycle, State};
use crate::store::{Change, Expected, Key, Prefix, StoreErrorKind};

/// Timers that are handled in one call at most, so that a mistake in one
/// cannot hang a process.
const TIMERS_MAX: usize = 64;

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watching {
    Nothing,
    /// Leader and root.
    Root,
    /// The workers' records too.
    Workers,
    /// And what operators wish.
    All,
}

impl Member {
    /// Whether the member was started and has reached the store.
    pub(super) fn is_begun(&self) -> bool {
        self.is_started && self.incarnation.is_some()
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, clock: Clock) {
        let last = self.clock.now;
        self.clock = Clock {
            now: clock.now.max(last),
            ..clock
        };
        let now = self.clock.now;
        let due = self.timers.next().map_or(now, |due| due.min(now));
        self.watch_gap(due);
    }

    /// Does what is due.
    pub(super) fn timers_due(&mut self) {
        for _ in 0..TIMERS_MAX {
            let Some(timer) = self.timers.take_due(self.clock.now) else {
                break;
            };
            self.timer_due(timer);
        }
    }

    fn timer_due(&mut self, timer: Timer) {
        match timer {
            Timer::Expire => {}
            Timer::Drain => self.drain(),
            Timer::Renew => self.renew(),
            Timer::Claim => self.claim_step(),
            Timer::Take => self.take_step(),
            Timer::Beat => self.beat(),
            Timer::Poll => self.poll(),
            Timer::Fence => self.fence_due(),
            Timer::Round => self.touch(),
            Timer::Root => self.read_base_now(),
            Timer::Source => self.source_due(),
            Timer::Garbage => self.delete_garbage(),
            Timer::Hooks => self.watch_hooks(),
            Timer::Restart => self.work.dirty = true,
            Timer::Shutdown => self.shutdown_over(),
            Timer::Lost => self.operations_lost(),
        }
    }

    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::Start => self.start(),
            Event::Connected(incarnation) => self.connected(incarnation),
            Event::Reply(id, reply) => {
                if let Some(purpose) = self.operations.end(id) {
                    self.answered(purpose, reply);
                }
            }
            Event::Seen(change) => self.seen(change),
            Event::Missed => self.poll(),
            Event::Partitions(answer) => self.source_answered(answer),
            Event::HookBegun(id) => self.hook_begun(id),
            Event::HookEnded(id, end) => self.hook_ended(id, end),
            Event::Suspended => self.end_session("the process was suspended"),
            Event::Described(description) => self.described(description),
            Event::RefreshRequested => self.refresh_requested(),
            Event::Elected(may_lead) => self.elected(may_lead),
            Event::Stop(how) => self.stop(how),
        }
    }

    fn start(&mut self) {
        if !self.is_started {
            self.is_started = true;
            if self.is_begun() {
                self.begun_at = self.clock.now;
                self.begin_claim();
                self.poll();
            }
        }
    }

    /// What nobody could read again is not said: it would look like a crash.
    fn described(&mut self, description: SelfDescription) {
        if let Err(invalid) = description.check() {
            let text = format!("what this worker says of itself is ignored: {invalid}");
            return self.report(Report::Problem(text.into()));
        }
        if self.setup.description != description {
            self.setup.description = description;
            self.renew();
        }
    }

    fn answered(&mut self, purpose: Purpose, reply: Reply) {
        match purpose {
            Purpose::ListWorkers(asked) => match reply {
                Reply::Listed(entries) => self.workers_listed(asked, &entries),
                _failed => self.workers_not_listed(),
            },
            Purpose::ListAfterLoss(renewed) => self.listed_after_loss(renewed, &reply),
            Purpose::RootAfterLoss(renewed) => self.root_after_loss(renewed, reply),
            Purpose::Claim => self.claim_answered(reply),
            Purpose::ReadClaim => self.claim_read(reply),
            // Whatever is there now.
            Purpose::Alarm(key) => self.read_worker(key),
            Purpose::Renew(session, beat) => self.renewal_answered(session, beat, reply),
            Purpose::ReadRenewal(session) => self.renewal_read(session, reply),
            Purpose::ReadRoot => self.root_answered(reply),
            Purpose::ReadChunk(revision, key) => self.chunk_answered(revision, &key, reply),
            Purpose::ReadLeader => self.leader_answered(reply),
            Purpose::Take(session, epoch) => self.take_answered(session, epoch, reply),
            Purpose::Beat(serial) => self.beat_answered(serial, reply),
            Purpose::Resign | Purpose::DeleteChunk => {}
            Purpose::Fence(key) => self.fence_answered(key, reply),
            Purpose::Restore(key) => self.restore_answered(key, reply),
            Purpose::StrikeOut(key) => self.struck_out(key),
            Purpose::ReadWorker(key) => {
                // What was known did not hold: it may be of a store that has
                // forgotten since, with revisions that never come again.
                if let Reply::Got(found) = reply {
                    self.observation.correct(&key, found.as_ref());
                    if let Some(entry) = found {
                        self.worker_seen(&entry);
                    }
                }
            }
            Purpose::WriteChunk(attempt, key) => self.chunk_written(attempt, key, &reply),
            Purpose::WriteRoot(attempt) => self.root_written(attempt, reply),
            Purpose::ReadControl => self.control_answered(reply),
            Purpose::ReadMoves => self.moves_read(reply),
            Purpose::WriteMoves => self.moves_written(&reply),
            Purpose::ListChunks => self.chunks_listed(reply),
        }
    }

    fn operations_lost(&mut self) {
        while let Some(purpose) = self.operations.take_lost(self.clock.now) {
            self.answered(purpose, Reply::Failed(StoreErrorKind::Unknown));
        }
        if let Some(next) = self.operations.next_lost() {
            self.timers.set(Timer::Lost, next);
        }
    }

    fn seen(&mut self, change: Change) {
        let entry = match change {
            Change::Put(entry) => entry,
            Change::Deleted(key, revision) if key == self.keys.control => {
                return self.control_deleted(revision);
            }
            // Nothing else of ours is deleted but chunks, by us.
            Change::Deleted(..) => return self.poll(),
        };
        if !self.is_begun() {
            return;
        }
        if entry.key == self.keys.leader {
            self.leader_found(&entry);
        } else if entry.key == self.keys.root {
            self.root_found(entry);
        } else if entry.key == self.keys.control {
            self.control_found(&entry);
        } else if self.keys.workers.holds(&entry.key) {
            let is_own = self
                .session
                .as_ref()
                .is_some_and(|session| session.key == entry.key);
            if is_own {
                self.own_record_seen(&entry);
            }
            if self.observes() {
                self.worker_seen(&entry);
            }
        }
    }

    /// Reads what no watch may have told.
    pub(super) fn poll(&mut self) {
        if !self.is_begun() || self.is_over {
            return;
        }
        let interval = self.jittered(self.setup.settings.root_poll_interval);
        self.timers.set(Timer::Poll, self.clock.now + interval);
        if let Some(leading) = &self.leading {
            let moves_known = leading.moves.is_known;
            let control = self.keys.control.clone();
            if !self
                .operations
                .is_under_way(|known| *known == Purpose::ReadControl)
            {
                self.read(control, Purpose::ReadControl);
            }
            if !moves_known
                && !self
                    .operations
                    .is_under_way(|known| *known == Purpose::ReadMoves)
            {
                let moves = self.keys.moves.clone();
                self.read(moves, Purpose::ReadMoves);
            }
        } else {
            self.read_leader();
        }
        self.read_root();
        if self.observes() {
            self.list_workers();
        }
    }

    /// What follows from whatever happened.
    pub(super) fn settle(&mut self) {
        if !self.is_over {
            self.lead();
            self.leave_if_idle();
        }
        if !self.is_over {
            self.tell_deadline();
            self.work_on();
            self.leave_if_idle();
            self.watch();
        }
        self.tell_state();
    }

    /// Tells what the member is doing, if that has changed.
    pub(super) fn tell_state(&mut self) {
        let state = self.current_state();
        if state == self.state {
            return;
        }
        if self.state == State::ClaimingId && state != State::Shutdown {
            // Where a leader and a root are known already this takes no time.
            let path = [State::Election, State::WaitingAssignment];
            for step in path.into_iter().take_while(|step| *step != state) {
                self.tell(step);
            }
        }
        self.tell(state);
    }

    fn tell(&mut self, to: State) {
        let from = std::mem::replace(&mut self.state, to);
        self.report(Report::State { from, to });
    }

    fn watch(&mut self) {
        let watching = match () {
            () if !self.is_begun() => Watching::Nothing,
            () if self.leading.is_some() => Watching::All,
            () if self.observes() => Watching::Workers,
            () => Watching::Root,
        };
        if watching == self.watching {
            return;
        }
        self.watching = watching;
        let mut keys = Vec::new();
        if watching != Watching::Nothing {
            keys.push(Watched::Key(self.keys.leader.clone()));
            keys.push(Watched::Key(self.keys.root.clone()));
        }
        if matches!(watching, Watching::Workers | Watching::All) {
            keys.push(Watched::Below(self.keys.workers.clone()));
        }
        if watching == Watching::All {
            keys.push(Watched::Key(self.keys.control.clone()));
        }
        self.actions.push_back(Action::Watch(keys));
    }

    fn current_state(&self) -> State {
        if self.stopping.is_some() || self.is_over {
            return State::Shutdown;
        }
        if !self.is_started {
            return State::Init;
        }
        let Some(session) = &self.session else {
            return State::ClaimingId;
        };
        if let Some(leading) = &self.leading {
            let writes = matches!(leading.stage, Stage::Chunks(..) | Stage::Head(..));
            if leading.policy.has_crashed {
                return State::Emergency;
            } else if writes || leading.awaits_words {
                return State::Rebalancing;
            } else if leading.policy.is_waiting() {
                return State::Scaling;
            }
        }
        match session.adopted {
            _ if self.election.record.is_none() => State::Election,
            None => State::WaitingAssignment,
            Some(_) if self.view.awaits_words => State::Rebalancing,
            Some((_, Lifecycle::ColdStart)) => State::Scaling,
            Some((_, Lifecycle::PostColdStart | Lifecycle::Stable)) => State::Stable,
        }
    }

    pub(super) fn report(&mut self, report: Report) {
        self.actions.push_back(Action::Report(report));
    }

    /// How long to wait after so many failures before this one; told when there
    /// were as many as the settings say. Never longer than a lease: what is
    /// waited for decides who works.
    pub(super) fn retry_wait(&mut self, what: &str, failures: u32) -> Duration {
        let retries = self.setup.retries;
        if failures == retries.max {
            let times = u64::from(failures) + 1;
            let text = format!("{what} failed {times} times in a row, trying on");
            self.report(Report::Problem(text.into()));
        }
        let settings = &self.setup.settings;
        let ceiling = retries.ceiling(failures).min(settings.heartbeat_ttl);
        settings.leader_beat() / 8 + self.random.within(ceiling)
    }

    /// A little less than `span`, so that members do not act in step.
    pub(super) fn jittered(&mut self, span: Duration) -> Duration {
        span - self.random.within(span / 8)
    }

    /// Asks for all records, unless a listing is under way that counts: one that
    /// was lost would hold up a quarantine until it is given up.
    pub(super) fn list_workers(&mut self) {
        let based = self.leading.as_ref().map(|leading| leading.based);
        let counts = |known: &Purpose| match known {
            Purpose::ListWorkers(asked) => Some(*asked) >= based,
            _ => false,
        };
        if !self.operations.is_under_way(counts) {
            let prefix = self.keys.workers.clone();
            self.list(prefix, Purpose::ListWorkers(self.clock.now));
        }
    }

    pub(super) fn list(&mut self, prefix: Prefix, purpose: Purpose) {
        let timeout = self.setup.settings.operation_timeout;
        self.operate(Operation::List(prefix), purpose, timeout);
    }

    pub(super) fn read(&mut self, key: Key, purpose: Purpose) {
        let timeout = self.setup.settings.operation_timeout;
        self.read_within(key, purpose, timeout);
    }

    pub(super) fn read_within(&mut self, key: Key, purpose: Purpose, timeout: Duration) {
        self.operate(Operation::Get(key), purpose, timeout);
    }

    pub(super) fn write_within(
        &mut self,
        key: Key,
        expected: Expected,
        value: Vec<u8>,
        purpose: Purpose,
        timeout: Duration,
    ) {
        self.write_bytes(key, expected, value.into(), purpose, timeout);
    }

    pub(super) fn write_bytes(
        &mut self,
        key: Key,
        expected: Expected,
        value: Arc<[u8]>,
        purpose: Purpose,
        timeout: Duration,
    ) {
        let operation = Operation::CompareAndSet {
            key,
            expected,
            value,
        };
        self.operate(operation, purpose, timeout);
    }

    pub(super) fn operate(&mut self, operation: Operation, purpose: Purpose, timeout: Duration) {
        let (id, lost) = self.operations.begin(purpose, self.clock.now, timeout);
        self.timers.set_earlier(Timer::Lost, lost);
        self.actions.push_back(Action::Store {
            id,
            operation,
            timeout,
        });
    }
}
