//! The session: having the worker's name, beating, and leaving.

use std::time::Duration;

use super::operations::Purpose;
use super::timers::Timer;
use super::units::Seen;
use super::{Life, Member};
use crate::lease::action::{Ending, Operation, Report, StopReason};
use crate::lease::defect::Defect;
use crate::moment::Moment;
use crate::store::{Heartbeat, Nonce, SessionStart, StoreErrorKind, Tenure};

/// The worker's hold of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    /// None was asked for.
    None,
    /// It is asked for.
    Opening {
        nonce: Nonce,
        /// Who has it must have renewed it by then.
        taken: Option<Taken>,
    },
    /// It is there.
    Open(Nonce),
    /// It was given up.
    Left,
}

/// A name that another session has, as the store first answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    until: Moment,
    /// Clocks differ by less than this over that time, and a renewal adds more.
    slack: Duration,
}

impl Member {
    pub(super) const fn open_nonce(&self) -> Option<Nonce> {
        match self.session {
            Session::Open(nonce) => Some(nonce),
            Session::None | Session::Opening { .. } | Session::Left => None,
        }
    }

    /// Asks for the worker's name, for a session of its own.
    pub(super) fn open_session(&mut self) {
        let nonce = self.nonce();
        self.session = Session::Opening { nonce, taken: None };
        self.ask_for_name(nonce);
    }

    fn ask_for_name(&mut self, session: Nonce) {
        self.name_asked = self.now;
        let ttl = self.setup.settings.lease_ttl;
        let timeout = self.setup.settings.operation_timeout;
        let operation = Operation::OpenSession { session, ttl };
        self.send(Purpose::Open(session), operation, timeout);
    }

    /// The time to ask for the name again has come.
    pub(super) fn open_again(&mut self) {
        let Session::Opening { nonce, .. } = self.session else {
            return;
        };
        let is_under_way = self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Open(_) | Purpose::Beat(_)));
        match is_under_way {
            false => self.ask_for_name(nonce),
            // It may be of an earlier session, whose answer changes nothing.
            true => {
                let retry = self.now + self.setup.settings.renewal_retry();
                self.timers.set_earlier(Timer::Open, retry);
            }
        }
    }

    pub(super) fn session_answered(&mut self, asked: Nonce, start: SessionStart) {
        let Session::Opening { nonce, taken } = self.session else {
            return;
        };
        if nonce != asked {
            return;
        }
        match start {
            SessionStart::Opened => self.session_opened(nonce),
            SessionStart::Taken(left) => {
                let until = self.now + left;
                // The answer may have taken long: it was so when it was asked.
                let least = self.name_asked + left;
                if taken.is_some_and(|taken| least > taken.until + taken.slack) {
                    self.name_is_taken();
                    return;
                }
                if taken.is_none() {
                    self.problem(format!(
                        "the name {} belongs to a session that ends in {left:?} unless it is renewed: waiting",
                        self.setup.worker
                    ));
                }
                // The session may be longer than those of this worker.
                let slack = self.setup.settings.lease_ttl.max(left) / 10;
                let taken = taken.or(Some(Taken { until, slack }));
                self.session = Session::Opening { nonce, taken };
                self.timers
                    .set(Timer::Open, until + Duration::from_millis(5));
            }
        }
    }

    /// Whoever has the name has renewed it: it is alive.
    fn name_is_taken(&mut self) {
        self.ending = Ending::NameTaken;
        self.problem(format!(
            "another process is {} and renews its name: give each process a name of its own",
            self.setup.worker
        ));
        self.session = Session::Left;
        self.begin_stop();
    }

    fn session_opened(&mut self, nonce: Nonce) {
        self.session = Session::Open(nonce);
        self.joined = Some(self.now);
        self.is_window_over = false;
        self.roster_changed = self.now;
        self.report(Report::Joined);
        self.beat();
        self.resync();
    }

    /// The name is asked for again: a session that has it already gets it.
    pub(super) fn open_failed(&mut self, asked: Nonce, kind: StoreErrorKind, why: &str) {
        if !matches!(self.session, Session::Opening { nonce, .. } if nonce == asked) {
            return;
        }
        let is_hopeless = matches!(kind, StoreErrorKind::Unfit | StoreErrorKind::Invalid);
        if is_hopeless && self.joined.is_none() {
            self.ending = Ending::Unfit(why.into());
            self.session = Session::Left;
            self.begin_stop();
            return;
        }
        self.open_later();
    }

    fn open_later(&mut self) {
        let pause = self
            .setup
            .settings
            .backoff
            .min(self.setup.settings.renewal_try());
        let pause = self.random.within(pause) + pause / 4;
        self.timers.set_earlier(Timer::Open, self.now + pause);
    }

    /// Beats, if there is a session.
    pub(super) fn beat(&mut self) {
        let Some(session) = self.open_nonce() else {
            return;
        };
        let next = self.now + self.setup.settings.heartbeat_interval;
        self.timers.set(Timer::Beat, next);
        let settings = &self.setup.settings;
        let timeout = settings.operation_timeout.min(settings.renewal_try());
        let heartbeat = Heartbeat {
            session,
            info: self.info(),
            heartbeat_ttl: settings.heartbeat_ttl,
            session_ttl: settings.lease_ttl,
            report: self.quarantine_report(),
        };
        let operation = Operation::Beat(Box::new(heartbeat));
        self.send(Purpose::Beat(session), operation, timeout);
    }

    pub(super) fn beaten(&mut self, beat: Nonce, tenure: Tenure) {
        match (self.session, tenure) {
            (Session::Open(nonce), Tenure::Current) if nonce == beat && self.is_unlisted => {
                self.is_unlisted = false;
                self.reconcile_soon();
            }
            (Session::Open(nonce), Tenure::Over) if nonce == beat => {
                self.report(Report::SessionEnded(
                    "its heartbeat came too late, or the store lost it, or another program wrote over it"
                        .into(),
                ));
                self.session = Session::None;
                self.forget_roster();
                match self.life {
                    Life::Live => self.open_session(),
                    // There is nothing to leave any more.
                    _ => self.session = Session::Left,
                }
            }
            _ => {}
        }
    }

    /// Whoever has lost its name does not know who else has: if all have, the
    /// first one back would take everything.
    fn forget_roster(&mut self) {
        if std::mem::take(&mut self.is_roster_known) {
            let peers = self.roster.peers().iter();
            self.missed = peers.map(|peer| peer.name.clone()).collect();
        }
        // Whose lease has run out meanwhile may be back as soon as this worker.
        for unit in self.units.iter_mut().filter(|unit| unit.is_takeable()) {
            unit.seen = Seen::Unknown;
        }
    }

    pub(super) fn beat_failed(&mut self, beat: Nonce) {
        if self.open_nonce() == Some(beat) {
            let retry = self.now + self.setup.settings.renewal_retry();
            self.timers.set_earlier(Timer::Beat, retry);
        }
    }

    /// Stops everything, to end when it has stopped.
    pub(super) fn begin_stop(&mut self) {
        if self.life != Life::Live {
            if self.life == Life::New {
                self.end();
            }
            return;
        }
        self.life = Life::Stopping;
        let until = self.now + self.setup.settings.shutdown_timeout;
        self.timers.set(Timer::Shutdown, until);
        // Others need not wait for whoever says that it goes.
        self.beat();
        let all: Vec<_> = self.tenures.iter().map(|tenure| tenure.id).collect();
        for id in all {
            self.stop_tenure(id, StopReason::Shutdown);
        }
    }

    /// The time for stopping is over.
    pub(super) fn stop_is_late(&mut self) {
        self.give_back();
        if !self.tenures.is_empty() && self.ending == Ending::InOrder {
            self.ending = Ending::Late;
        }
        if self.session != Session::Left {
            self.leave();
        }
        self.end();
    }

    /// Ends, once nothing is left that has to be given back.
    pub(super) fn end_if_stopped(&mut self) {
        if self.life != Life::Stopping {
            return;
        }
        let is_done = match self.is_planted(Defect::LeaveBeforeStop) {
            true => true,
            false => self.tenures.is_empty() && !self.has_wishes(),
        };
        if !is_done
            || self
                .operations
                .is_under_way(|purpose| matches!(purpose, Purpose::Leave))
        {
            return;
        }
        match self.session {
            Session::Open(_) => self.leave(),
            _ => self.end(),
        }
    }

    fn leave(&mut self) {
        if let Some(session) = self.open_nonce() {
            let timeout = self.setup.settings.operation_timeout;
            self.send(Purpose::Leave, Operation::Leave { session }, timeout);
        }
    }

    /// Leaving was answered, or never will be: the name runs out.
    pub(super) fn left(&mut self) {
        self.session = Session::Left;
    }
}
