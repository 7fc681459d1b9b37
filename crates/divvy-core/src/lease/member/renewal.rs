//! Renewing leases, and what ends when that fails.

use super::Member;
use super::operations::Purpose;
use super::tenure::{Phase, Tenure};
use super::timers::Timer;
use crate::lease::action::{Action, Operation, StopReason, TenureId};
use crate::lease::defect::Defect;
use crate::moment::Moment;
use crate::store::{self, Claim};

impl Member {
    /// When a grant ends whose acquisition or renewal was sent then.
    pub(super) fn grant_end(&self, sent: Moment) -> Moment {
        let from = match self.is_planted(Defect::DeadlineFromReply) {
            true => self.now,
            false => sent,
        };
        match self.is_planted(Defect::NoDrift) {
            true => from + self.setup.settings.lease_ttl,
            false => from + self.setup.settings.usable(),
        }
    }

    fn is_renewed(&self, tenure: &Tenure) -> bool {
        let is_held_back = matches!(tenure.phase(), Phase::Stopping(..))
            && self.is_planted(Defect::RenewNotWhileStopping);
        let is_left = tenure.is_lost || tenure.is_unconfirmed;
        tenure.is_active() && !is_left && !tenure.is_renewing && !is_held_back
    }

    /// Renews every lease whose renewal is not under way.
    pub(super) fn renew_all(&mut self) {
        let next = self.now + self.setup.settings.renew_interval;
        self.timers.set(Timer::Renew, next);
        let due: Vec<TenureId> = self
            .tenures
            .iter()
            .filter(|tenure| self.is_renewed(tenure))
            .map(|tenure| tenure.id)
            .collect();
        let ttl = self.setup.settings.lease_ttl;
        let timeout = self.setup.settings.renewal_try();
        let sent = match self.is_planted(Defect::RenewFirstBatch) {
            true => 1,
            false => usize::MAX,
        };
        for ids in due.chunks(self.setup.batches.renewals).take(sent) {
            let mut claims = Vec::with_capacity(ids.len());
            for id in ids {
                let tenure = self.tenures.get_mut(*id).expect("it was just there");
                tenure.is_renewing = true;
                claims.push(Claim {
                    key: tenure.key.clone(),
                    nonce: tenure.nonce,
                });
            }
            let purpose = Purpose::Renew(ids.to_vec(), self.now);
            self.send(purpose, Operation::Renew { claims, ttl }, timeout);
        }
    }

    pub(super) fn renewed(&mut self, ids: &[TenureId], sent: Moment, answers: &[store::Tenure]) {
        let until = self.grant_end(sent);
        let mut prolonged = Vec::with_capacity(ids.len());
        let mut lost = Vec::new();
        for (&id, answer) in ids.iter().zip(answers) {
            let is_kept =
                *answer == store::Tenure::Current || self.is_planted(Defect::RenewOverLoss);
            let Some(tenure) = self.tenures.get_mut(id) else {
                continue;
            };
            tenure.is_renewing = false;
            match is_kept {
                false => lost.push(id),
                // A grant that has ended has ended.
                true if tenure.is_void => {}
                true => {
                    tenure.until = tenure.until.max(until);
                    prolonged.push(id);
                }
            }
        }
        if !prolonged.is_empty() {
            self.actions.push_back(Action::Deadline {
                tenures: prolonged,
                until: Some(until),
            });
        }
        for id in lost {
            self.lose(id);
        }
        self.are_grants_changed = true;
    }

    pub(super) fn renewal_failed(&mut self, ids: &[TenureId]) {
        if self.is_planted(Defect::RenewOnce) {
            return;
        }
        for id in ids {
            if let Some(tenure) = self.tenures.get_mut(*id) {
                tenure.is_renewing = false;
            }
        }
        let retry = self.now + self.setup.settings.renewal_retry();
        self.timers.set_earlier(Timer::Renew, retry);
    }

    /// A lease is known to be no longer this tenure's.
    fn lose(&mut self, id: TenureId) {
        let tenure = self.tenures.get_mut(id).expect("it was just there");
        tenure.is_lost = true;
        if !self.is_planted(Defect::KeepLostGrant) {
            self.void(vec![id]);
        }
        self.stop_tenure(id, StopReason::Lost);
    }

    /// Ends grants, for good.
    pub(super) fn void(&mut self, ids: Vec<TenureId>) {
        let mut voided = Vec::new();
        for id in ids {
            if let Some(tenure) = self.tenures.get_mut(id).filter(|tenure| !tenure.is_void) {
                tenure.is_void = true;
                voided.push(id);
            }
        }
        if !voided.is_empty() {
            self.actions.push_back(Action::Deadline {
                tenures: voided,
                until: None,
            });
        }
    }

    /// Grants whose leases were not renewed end now.
    pub(super) fn expire(&mut self) {
        if self.is_planted(Defect::NoSelfFence) {
            return;
        }
        let ended = self
            .tenures
            .iter()
            .filter(|tenure| tenure.until <= self.now);
        let ended: Vec<TenureId> = ended.map(|tenure| tenure.id).collect();
        for &id in &ended {
            self.stop_tenure(id, StopReason::Unrenewed);
        }
        self.void(ended);
        self.are_grants_changed = true;
    }

    /// Partitions whose leases were not renewed stop before their grants end.
    pub(super) fn drain(&mut self) {
        if self.is_planted(Defect::NoSelfFence) {
            return;
        }
        let ahead = self.setup.settings.drain_ahead();
        let tenures = self.tenures.iter();
        let late = tenures.filter(|tenure| tenure.until <= self.now + ahead);
        let late: Vec<TenureId> = late.map(|tenure| tenure.id).collect();
        for id in late {
            self.stop_tenure(id, StopReason::Unrenewed);
        }
        self.are_grants_changed = true;
    }

    pub(super) fn set_grant_timers(&mut self) {
        if self.is_planted(Defect::NoSelfFence) {
            return;
        }
        let tenures = self.tenures.iter().filter(|tenure| !tenure.is_void);
        let next = tenures.map(|tenure| tenure.until).min();
        self.timers.put(Timer::Expire, next);
        let ahead = self.setup.settings.drain_ahead();
        let running = self
            .tenures
            .iter()
            .filter(|tenure| !tenure.is_void && tenure.stop.is_none());
        let next = running.map(|tenure| tenure.until).min();
        let drain = next.map(|until| Moment::from_origin(until.to_origin().saturating_sub(ahead)));
        self.timers.put(Timer::Drain, drain);
    }
}
