//! How long this member may work: its lease, and the end of a session.

use std::time::Duration;

use super::Member;
use super::operations::Purpose;
use super::timers::Timer;
use crate::leader::action::{Action, Report};
use crate::leader::defect::Defect;
use crate::leader::event::Reply;
use crate::leader::record::WorkerRecord;
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
        let is_checked = self
            .session
            .as_ref()
            .is_some_and(|session| session.regained.is_none());
        is_time_left && is_checked && self.stopping.is_none() && !forgot
    }

    /// The lease was prolonged, or a session began.
    pub(super) fn lease_changed(&mut self) {
        if let (Some(drain), Some(end)) = (self.drain_start(), self.authority_end()) {
            self.timers.set(Timer::Drain, drain);
            self.timers.set(Timer::Expire, end);
        }
        self.check_regained();
        if self.is_draining && self.may_work() {
            self.is_draining = false;
            self.work.dirty = true;
            if let Some(since) = self.silent_since.take() {
                let after = self.clock.now.since(since);
                self.report(Report::LeaseRegained(after));
            }
        }
    }

    /// A renewal at its own revision proves that nobody has taken anything
    /// from this session only if the store has not gone back meanwhile. While
    /// the lease lasted, this session would have found out with everybody
    /// else; once it had ended, others may know better: they say so in their
    /// records, or by a root that asks everything back.
    fn check_regained(&mut self) {
        let regained = self.session.as_ref().and_then(|session| session.regained);
        let Some(renewed) = regained else {
            return;
        };
        let list = Purpose::ListAfterLoss(renewed);
        let root = Purpose::RootAfterLoss(renewed);
        let is_step = |known: &Purpose| *known == list || *known == root;
        if !self.operations.is_under_way(is_step) {
            let prefix = self.keys.workers.clone();
            self.list(prefix, list);
        }
    }

    fn is_regained_at(&self, renewed: Moment) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.regained == Some(renewed))
    }

    /// Reads the root if no live worker has found that the store forgot, beyond
    /// what the root in force answers.
    pub(super) fn listed_after_loss(&mut self, renewed: Moment, reply: &Reply) {
        let Reply::Listed(entries) = reply else {
            // The next renewal asks again.
            return;
        };
        let newest = self.view.newest.as_ref();
        let answered = newest.map_or(0, |newest| newest.committed.root.answered);
        let is_alarmed = entries.iter().any(|entry| {
            let record = WorkerRecord::decode(&entry.value);
            record.is_ok_and(|record| self.is_unanswered(&record, answered))
        });
        if self.is_regained_at(renewed) && !is_alarmed {
            let root = self.keys.root.clone();
            self.read(root, Purpose::RootAfterLoss(renewed));
        }
    }

    /// Takes up work again by the root that was read. If that is not in force here
    /// or not yet, the next renewal asks again.
    pub(super) fn root_after_loss(&mut self, renewed: Moment, reply: Reply) {
        let found = match &reply {
            Reply::Got(Some(entry)) => Some(entry.revision),
            _ => None,
        };
        self.root_answered(reply);
        let newest = self.view.newest.as_ref().map(|newest| newest.revision);
        if found.is_some() && newest == found && self.is_regained_at(renewed) {
            let session = self.session.as_mut().expect("it was regained");
            session.regained = None;
            self.work.dirty = true;
            self.lease_changed();
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
        let session = self.session.as_ref();
        if session.is_some_and(|session| session.regained.is_some()) {
            // The deadline that has passed stands until work may be taken up.
            return;
        }
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
