//! Stopping: hooks first, then the word that everything was given back.

use super::Member;
use super::timers::Timer;
use crate::leader::action::Action;
use crate::leader::defect::Defect;
use crate::leader::record::Shutdown;
use crate::leader::settings::Overdue;

impl Member {
    pub(super) fn stop(&mut self, how: Shutdown) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some(how);
        self.work.dirty = true;
        let end = self.clock.now + self.setup.settings.shutdown_timeout;
        self.timers.set(Timer::Shutdown, end);
        self.timers.cancel(Timer::Claim);
        self.timers.cancel(Timer::Take);
        self.resign();
    }

    /// Whether everything has been given back, so that leaving may be said.
    pub(super) fn may_leave(&self) -> bool {
        let is_idle = self.work.is_idle() || self.defect == Some(Defect::LeaveBeforeStop);
        self.stopping.is_some() && is_idle
    }

    /// Says that the member has left, once it may.
    pub(super) fn leave_if_idle(&mut self) {
        if self.stopping.is_none() || !self.may_leave() {
            return;
        }
        match self.session {
            Some(_) if self.is_leaving => {}
            Some(_) => {
                self.is_leaving = true;
                self.renew();
            }
            None => self.left(),
        }
    }

    /// The store knows that the member has left, or nothing is left to say.
    pub(super) fn left(&mut self) {
        self.session = None;
        self.is_over = true;
        self.timers.cancel_all();
        self.tell_deadline();
        self.tell_state();
        self.actions.push_back(Action::Ended);
    }

    /// The time for stopping is over. Work that cannot be stopped goes down
    /// with the process.
    pub(super) fn shutdown_over(&mut self) {
        let hangs = !self.work.is_idle() && self.setup.settings.overdue == Overdue::Abort;
        if hangs {
            self.abort("stop hooks have not ended within the time for stopping".to_owned());
        } else {
            self.left();
        }
    }
}
