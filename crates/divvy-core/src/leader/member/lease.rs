//! How long this member may work: its lease, and the end of a session.

use std::time::Duration;

use super::Member;
use super::timers::Timer;
use crate::leader::action::{Action, Report};
use crate::leader::defect::Defect;
use crate::leader::settings::StoreOutage;
use crate::moment::Moment;

impl Member {
    /// When authority ends unless the lease is renewed.
    pub(super) fn authority_end(&self) -> Option<Moment> {
        let session = self.session.as_ref()?;
        Some(match self.outlasts_lease() {
            true => Moment::from_origin(Duration::MAX),
            false => before(session.until, self.setup.settings.margin()),
        })
    }

    fn drain_start(&self) -> Option<Moment> {
        let session = self.session.as_ref()?;
        Some(match self.outlasts_lease() {
            true => Moment::from_origin(Duration::MAX),
            false => before(session.until, self.setup.settings.drain_ahead()),
        })
    }

    /// Whether work goes on although the lease is over, until the end of the
    /// session is known.
    fn outlasts_lease(&self) -> bool {
        let may_overlap = self.setup.settings.store_outage == StoreOutage::Overlap;
        may_overlap || self.defect == Some(Defect::NoSelfFence)
    }

    /// Whether partitions may be started, and need not be stopped.
    pub(super) fn may_work(&self) -> bool {
        let is_time_left = self.drain_start().is_some_and(|end| self.clock.now < end);
        let forgot = self.defect == Some(Defect::ForgetToRestart) && self.has_drained;
        is_time_left && self.stopping.is_none() && !forgot
    }

    /// The lease was prolonged, or a session began.
    pub(super) fn lease_changed(&mut self) {
        if let (Some(drain), Some(end)) = (self.drain_start(), self.authority_end()) {
            self.timers.set(Timer::Drain, drain);
            self.timers.set(Timer::Expire, end);
        }
        if self.is_draining && self.may_work() {
            self.is_draining = false;
            self.work.dirty = true;
            if let Some(since) = self.silent_since.take() {
                let after = self.clock.now.since(since);
                self.report(Report::LeaseRegained(after));
            }
        }
    }

    /// The lease was not renewed in time: stop before it ends, and take the
    /// work up again if a renewal is accepted after all.
    pub(super) fn drain(&mut self) {
        let Some(session) = &self.session else { return };
        if !self.is_draining && self.stopping.is_none() {
            let renewed = before(session.until, self.setup.settings.heartbeat_ttl);
            self.silent_since = Some(renewed);
            let silent = self.clock.now.since(renewed);
            self.report(Report::LeaseRunsOut(silent));
        }
        self.is_draining = true;
        self.has_drained = true;
        self.work.dirty = true;
    }

    /// Tells when authority ends, if that has changed.
    pub(super) fn tell_deadline(&mut self) {
        let end = self.authority_end();
        if end != self.deadline_told {
            self.deadline_told = end;
            self.actions.push_back(Action::Deadline(end));
        }
    }

    /// The session is over: everything stops now, and a new one begins.
    pub(super) fn end_session(&mut self, why: &str) {
        let Some(session) = self.session.take() else {
            return;
        };
        self.ended_session = Some(session.id);
        // Whoever begins anew looks anew: how long it was away, it cannot tell.
        self.observation.forget();
        for timer in [Timer::Renew, Timer::Drain, Timer::Expire, Timer::Take] {
            self.timers.cancel(timer);
        }
        if self.defect == Some(Defect::StopNotCalled) {
            let names: Vec<_> = self
                .work
                .iter()
                .map(|slot| slot.partition.clone())
                .collect();
            for partition in names {
                self.work.abandon(partition.as_str());
            }
        }
        self.work.revoke_all();
        self.is_draining = false;
        self.silent_since = None;
        // Authority ends before anything else is asked for.
        self.tell_deadline();
        self.report(Report::SessionEnded(why.into()));
        self.stop_leading("its session ended");
        if self.stopping.is_none() {
            self.begin_claim();
        }
    }
}

/// The moment `span` before `moment`.
pub(super) fn before(moment: Moment, span: Duration) -> Moment {
    Moment::from_origin(moment.to_origin().saturating_sub(span))
}
