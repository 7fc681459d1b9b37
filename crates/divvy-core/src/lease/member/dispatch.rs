//! What happens, handed to the part that it concerns.

use super::operations::Purpose;
use super::tenure::Phase;
use super::timers::Timer;
use super::{Life, Member};
use crate::lease::action::Report;
use crate::lease::defect::Defect;
use crate::lease::event::{Event, Reply};
use crate::moment::Moment;
use crate::store::{LeaseNotice, StoreErrorKind};

impl Member {
    /// Lets the time be `now`, and does what was due by then.
    pub(super) fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        while let Some(timer) = self.timers.take_due(self.now) {
            self.fire(timer);
            if self.is_over() {
                return;
            }
        }
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Expire => self.expire(),
            Timer::Drain => self.drain(),
            Timer::Renew => self.renew_all(),
            Timer::Beat => self.beat(),
            Timer::Open => self.open_again(),
            Timer::Reconcile => self.reconcile(),
            Timer::Config => self.read_groups(),
            Timer::Lapse => self.look_at_late(),
            Timer::Take => self.is_taking = true,
            Timer::Gather => self.give_back(),
            Timer::Release => self.release_again(),
            Timer::Hooks => self.look_at_hooks(),
            Timer::Shutdown => self.stop_is_late(),
            Timer::Lost => self.take_lost(),
        }
    }

    fn take_lost(&mut self) {
        while let Some(purpose) = self.operations.take_lost(self.now) {
            self.failed(purpose, StoreErrorKind::Unknown, "it was never answered");
        }
    }

    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::Start => self.begin(),
            Event::Connected(incarnation) => {
                let is_other = self.incarnation.as_ref() != Some(&incarnation);
                let is_new_life = is_other && self.incarnation.is_some();
                self.incarnation = Some(incarnation);
                if is_new_life {
                    // What it still knows of these, it says now.
                    self.renew_all();
                    self.beat();
                }
                self.store_answers(None);
                self.open_again();
                self.resync();
            }
            Event::Reply(id, reply) => {
                if let Some(purpose) = self.operations.end(id) {
                    self.replied(purpose, reply);
                }
            }
            Event::Noticed(notice) => self.noticed(notice),
            Event::HookBegun(hook) => {
                if let Some(id) = self.tenures.hook_begun(hook, self.now) {
                    self.watch_hook(id);
                }
            }
            Event::HookEnded(hook, end) => self.hook_ended(hook, end),
            Event::Described(description) => {
                if self.setup.description != description {
                    self.setup.description = description;
                    self.beat();
                    self.reconcile_soon();
                }
            }
            Event::Regrouped(groups) => {
                if self.groups.set_own(groups) {
                    self.regrouped();
                }
            }
            Event::Tuned(settings) => {
                let tuned = self.setup.settings.clone().tuned(&settings);
                if self.setup.settings != tuned {
                    self.setup.settings = tuned;
                    // The others go by the limits that this worker tells.
                    self.beat();
                    self.reconcile_soon();
                }
            }
            Event::DrainAsked(wanted) => {
                if self.is_drain_asked != wanted {
                    self.is_drain_asked = wanted;
                    self.beat();
                    self.reconcile_soon();
                }
            }
            Event::RefreshRequested => self.resync(),
            Event::Stop => self.begin_stop(),
        }
    }

    fn begin(&mut self) {
        if self.life != Life::New {
            return;
        }
        self.life = Life::Live;
        self.open_session();
        let settings = &self.setup.settings;
        let (renew, config) = (settings.renew_interval, settings.config_refresh_interval);
        self.timers.set(Timer::Renew, self.now + renew);
        if self.setup.dynamic {
            self.timers.set(Timer::Config, self.now + config);
        }
    }

    fn noticed(&mut self, notice: LeaseNotice) {
        match notice {
            LeaseNotice::Group(_) => self.read_groups(),
            LeaseNotice::Members => self.reconcile_soon(),
            LeaseNotice::Released(key) => self.seen_released(&key),
            LeaseNotice::Resync => self.resync(),
        }
    }

    /// The store answers again: a pause that is left from when it did not ends
    /// soon, and not at the same time for all who wait. Only what goes on during
    /// a pause can tell.
    fn store_answers(&mut self, purpose: Option<&Purpose>) {
        let is_pausing =
            self.backoff.is_active(self.now) && !self.is_planted(Defect::BackoffForever);
        if !is_pausing || !self.backoff.is_answered(purpose) {
            return;
        }
        let soon = self.random.within(self.setup.settings.renewal_retry());
        if self.backoff.hasten(self.now, self.now + soon) {
            self.timers.set_earlier(Timer::Take, self.now + soon);
            self.reconcile_soon();
        }
    }

    fn replied(&mut self, purpose: Purpose, reply: Reply) {
        if purpose.is_proved_by(&reply) {
            if purpose.goes_on() {
                self.store_answers(Some(&purpose));
            }
            if self.backoff.succeed(self.now, &purpose) {
                self.report(Report::Recovered);
            }
        }
        match (purpose, reply) {
            (purpose, Reply::Failed(kind, why)) => self.failed(purpose, kind, &why),
            (Purpose::Open(nonce), Reply::Session(start)) => self.session_answered(nonce, start),
            (Purpose::Beat(nonce), Reply::Beaten(beaten)) => {
                self.quarantine_seen(beaten.quarantine);
                self.beaten(nonce, beaten.tenure);
            }
            (Purpose::Leave, Reply::Left(_)) => self.left(),
            (Purpose::Members, Reply::Members(members, wishes)) => {
                self.members_read(&members, wishes.as_deref());
            }
            (Purpose::Groups, Reply::Groups(documents)) => self.groups_read(&documents),
            (Purpose::Look(units), Reply::Holders(holders)) => self.looked(&units, holders),
            (Purpose::Cooling(tenures), Reply::Cooling(cooling)) => {
                self.cooling_read(&tenures, &cooling);
            }
            (Purpose::Acquire(attempts, sent), Reply::Acquired(answers)) => {
                self.acquired(&attempts, sent, answers);
            }
            (Purpose::Adopt(attempt, sent), Reply::Tenures(tenures)) => {
                self.adopted(attempt, sent, tenures.first().copied());
            }
            (Purpose::Renew(tenures, sent), Reply::Tenures(answers)) => {
                self.renewed(&tenures, sent, &answers);
            }
            (Purpose::Release(tenures), Reply::Tenures(_)) => self.released(&tenures),
            (Purpose::Mark | Purpose::Log, _) => {}
            (purpose, _) => self.failed(
                purpose,
                StoreErrorKind::Unknown,
                "an answer of another kind",
            ),
        }
    }

    /// An operation failed, or was never answered.
    fn failed(&mut self, purpose: Purpose, kind: StoreErrorKind, why: &str) {
        if matches!(purpose, Purpose::Log) {
            // For people: work goes on without it.
            return;
        }
        let is_refused = matches!(kind, StoreErrorKind::Unfit | StoreErrorKind::Invalid);
        if is_refused && matches!(purpose, Purpose::Groups) {
            // Somebody else wrote to where they are: all else goes on.
            self.problem(format!(
                "workloads cannot be read, and the last known are kept: {why}"
            ));
            return;
        }
        let settings = &self.setup.settings;
        let span = (settings.backoff, settings.backoff_max);
        let failed = (&purpose, is_refused);
        if let Some(pause) = self.backoff.fail(self.now, failed, span, &mut self.random) {
            self.report(Report::Backoff(pause));
            if is_refused && self.backoff.report(why) {
                self.problem(format!("the store refuses: {why}"));
            }
        }
        if self.is_planted(Defect::BackoffForever) {
            self.backoff.stay();
        }
        match purpose {
            Purpose::Open(nonce) => self.open_failed(nonce, kind, why),
            Purpose::Beat(nonce) => self.beat_failed(nonce),
            Purpose::Leave => self.left(),
            Purpose::Members | Purpose::Look(_) => self.reconcile_soon(),
            Purpose::Groups => {
                let retry = self.now + self.setup.settings.backoff;
                self.timers.set_earlier(Timer::Config, retry);
            }
            Purpose::Cooling(_) | Purpose::Mark | Purpose::Log => {}
            Purpose::Acquire(attempts, sent) => self.acquire_failed(&attempts, sent, kind),
            Purpose::Adopt(attempt, _) => self.units.get_mut(attempt.unit).is_wished = false,
            Purpose::Renew(tenures, _) => self.renewal_failed(&tenures),
            Purpose::Release(tenures) => self.release_failed(&tenures),
        }
    }

    /// What follows from what happened.
    pub(super) fn settle(&mut self) {
        if self.is_over() {
            return;
        }
        if std::mem::take(&mut self.is_taking) {
            self.take();
        }
        self.release_stopped();
        self.write_log();
        self.end_if_stopped();
        if self.is_over() {
            return;
        }
        if std::mem::take(&mut self.are_grants_changed) {
            self.set_grant_timers();
        }
        self.timers.put(Timer::Lost, self.operations.next_lost());
    }

    /// Whether a wish for a lease is under way.
    pub(super) fn has_wishes(&self) -> bool {
        self.operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Acquire(..) | Purpose::Adopt(..)))
    }

    /// How many partitions this worker has and does not give up.
    pub(super) fn kept(&self) -> usize {
        let kept = self.tenures.iter().filter(|tenure| {
            matches!(tenure.phase(), Phase::Starting(..) | Phase::Running) && tenure.stop.is_none()
        });
        kept.count()
    }
}
