//! Giving up what another worker should have, and giving leases back.

use std::collections::BTreeSet;
use std::time::Duration;

use super::operations::Purpose;
use super::taking::Room;
use super::tenure::{Phase, Tenure};
use super::timers::Timer;
use super::units::Seen;
use super::{Life, Member};
use crate::lease::action::{Operation, Report, StopReason, TenureId};
use crate::lease::defect::Defect;
use crate::store::Claim;

/// How long what has stopped waits for what else stops.
const GATHER: Duration = Duration::from_millis(2);

impl Member {
    /// Gives up what another worker should have, and what is beyond the limits
    /// of this one, as far as that is allowed.
    pub(super) fn shed(&mut self) {
        let surplus = self.surplus();
        let candidates: Vec<TenureId> = self
            .tenures
            .iter()
            .filter(|tenure| tenure.can_stop())
            .filter(|tenure| self.is_anothers(tenure) || surplus.contains(&tenure.id))
            .map(|tenure| tenure.id)
            .collect();
        if candidates.is_empty() || self.backoff.is_active(self.now) {
            return;
        }
        if !self.is_eligible() {
            // Nothing holds back what should not be here at all.
            let reason = match self.is_drained() {
                true => StopReason::Drained,
                false => StopReason::Unhealthy,
            };
            for id in candidates {
                self.stop_tenure(id, reason);
            }
            return;
        }
        if !self.setup.settings.shedding || self.is_cordoned() {
            return;
        }
        let mut ripe: Vec<TenureId> = candidates
            .into_iter()
            .filter(|id| self.is_ripe(*id))
            .collect();
        if ripe.is_empty() {
            return;
        }
        if self.setup.settings.move_cooldown.is_zero() {
            self.give_up(&ripe);
            return;
        }
        if self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Cooling(_)))
        {
            return;
        }
        let most = self.setup.batches.candidates;
        if ripe.len() > most {
            // Others every time: the first ones may have to stay for long.
            let from = self.candidates_asked % ripe.len();
            ripe.rotate_left(from);
            ripe.truncate(most);
            self.candidates_asked = self.candidates_asked.wrapping_add(most);
        }
        let keys = ripe.iter().filter_map(|id| self.tenures.get(*id));
        let keys = keys.map(|tenure| tenure.key.clone()).collect();
        let timeout = self.setup.settings.operation_timeout;
        self.send(Purpose::Cooling(ripe), Operation::Cooling(keys), timeout);
    }

    /// Whether another live worker should have it.
    pub(super) fn is_anothers(&self, tenure: &Tenure) -> bool {
        let unit = self.units.get(tenure.unit);
        let desired = unit.place.desired.filter(|_| unit.group.is_some());
        desired.is_some_and(|desired| desired != self.roster.me())
    }

    /// What this worker has beyond its limits and nobody should have: limits can
    /// be lowered. Empty for one that may have nothing: it keeps what nobody
    /// else can have.
    pub(super) fn surplus(&self) -> BTreeSet<TenureId> {
        let mut room = Room::of_empty(self);
        let is_kept = |tenure: &&Tenure| {
            tenure.is_active() && tenure.stop.is_none() && !self.is_anothers(tenure)
        };
        let is_capped = |tenure: &Tenure| self.units.get(tenure.unit).place.is_capped;
        if room.is_unlimited() || !self.is_eligible() {
            return BTreeSet::new();
        }
        let kept = self.tenures.iter().filter(is_kept);
        let (capped, placed): (Vec<_>, Vec<_>) = kept.partition(|tenure| is_capped(tenure));
        for tenure in placed {
            room.fill(self.units.get(tenure.unit).group);
        }
        // Those that came last go first.
        let surplus = capped.into_iter().filter(|tenure| {
            let unit = self.units.get(tenure.unit);
            let fits = room.is_there(unit);
            if fits {
                room.fill(unit.group);
            }
            !fits
        });
        surplus.map(|tenure| tenure.id).collect()
    }

    /// Whether a partition may be given up by how long it has run here.
    fn is_ripe(&self, id: TenureId) -> bool {
        let Some(tenure) = self.tenures.get(id) else {
            return false;
        };
        let has_run = self.now.since(tenure.since) >= self.setup.settings.min_runtime;
        let keep = self.units.get(tenure.unit).keep_until;
        let is_kept = keep.is_some_and(|until| self.now < until);
        (has_run || self.is_planted(Defect::ShedEarly))
            && (!is_kept || self.is_planted(Defect::ShedInVain))
    }

    pub(super) fn cooling_read(&mut self, ids: &[TenureId], cooling: &[bool]) {
        let mut free = Vec::new();
        for (&id, &is_cooling) in ids.iter().zip(cooling) {
            let Some(tenure) = self.tenures.get(id) else {
                continue;
            };
            self.units.get_mut(tenure.unit).is_cooling = is_cooling;
            if !is_cooling {
                free.push(id);
            }
        }
        self.give_up(&free);
    }

    fn give_up(&mut self, ids: &[TenureId]) {
        self.pace();
        let settings = &self.setup.settings;
        let most = match settings.gentle_handoff {
            true => settings.releases_per_reconcile,
            false => 0,
        };
        let least = settings.min_partitions as usize;
        let mut kept = self.kept();
        let surplus = self.surplus();
        for &id in ids {
            let is_paced = most > 0 && self.given_up >= most;
            if is_paced || kept <= least || !self.is_eligible() {
                return;
            }
            // The answer took its time: it may be this worker's by now, or have to
            // run for longer.
            let tenure = self.tenures.get(id);
            if tenure.is_some_and(|tenure| {
                tenure.can_stop()
                    && self.is_ripe(id)
                    && (self.is_anothers(tenure)
                        || surplus.contains(&id)
                        || self.is_planted(Defect::ShedOwn))
            }) {
                self.given_up += 1;
                kept -= 1;
                self.stop_tenure(id, StopReason::Shed);
            }
        }
    }

    /// Gives back what has stopped, together with what stops at about the same
    /// time: one by one, many would be as many operations.
    pub(super) fn release_stopped(&mut self) {
        let (stopped, is_last) = (self.tenures.stopped(), self.tenures.stopping() == 0);
        if stopped == 0 {
            return;
        }
        match is_last || stopped >= self.setup.batches.releases {
            true => self.give_back(),
            false => self.timers.set_earlier(Timer::Gather, self.now + GATHER),
        }
    }

    /// Gives back all that has stopped, now.
    pub(super) fn give_back(&mut self) {
        self.timers.put(Timer::Gather, None);
        let keeps = !self.setup.settings.release_on_shutdown;
        let mut over = Vec::new();
        let mut stopped = Vec::new();
        for tenure in self.tenures.iter() {
            if tenure.phase() != Phase::Stopped {
                continue;
            }
            let is_kept = keeps && tenure.stop == Some(StopReason::Shutdown);
            if tenure.is_lost || is_kept {
                over.push(tenure.id);
                continue;
            }
            let claim = Claim {
                key: tenure.key.clone(),
                nonce: tenure.nonce,
            };
            stopped.push((tenure.id, claim));
        }
        for (id, _) in &stopped {
            self.tenures.turn(*id, Phase::Releasing);
        }
        for id in over {
            self.finish(id);
        }
        let timeout = self.setup.settings.renewal_try();
        for few in stopped.chunks(self.setup.batches.releases) {
            let (ids, claims): (_, Vec<Claim>) = few.iter().cloned().unzip();
            let keys = claims.iter().map(|claim| claim.key.clone()).collect();
            self.mark_moved(keys);
            let operation = Operation::Release { claims };
            self.send(Purpose::Release(ids), operation, timeout);
        }
    }

    pub(super) fn released(&mut self, ids: &[TenureId]) {
        for &id in ids {
            let is_stopped = self
                .tenures
                .get(id)
                .is_some_and(|tenure| !tenure.is_active());
            if is_stopped {
                self.finish(id);
            }
        }
    }

    /// A lease that cannot be given back runs out by itself.
    pub(super) fn release_failed(&mut self, ids: &[TenureId]) {
        for &id in ids {
            let Some(tenure) = self.tenures.get(id).filter(|tenure| !tenure.is_active()) else {
                continue;
            };
            if tenure.until <= self.now {
                self.finish(id);
            }
        }
        let is_stopping = self.life == Life::Stopping;
        if is_stopping && !std::mem::replace(&mut self.is_unreleased_told, true) {
            self.problem(format!(
                "leases that could not be given back: {}; it is tried again, and others take \
                 over when they are over",
                ids.len()
            ));
        }
        let retry = self.now + self.setup.settings.renewal_retry();
        self.timers.set_earlier(Timer::Release, retry);
    }

    pub(super) fn release_again(&mut self) {
        let is_under_way = self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Release(_)));
        if is_under_way {
            let retry = self.now + self.setup.settings.renewal_retry();
            self.timers.set_earlier(Timer::Release, retry);
            return;
        }
        let releasing = self
            .tenures
            .iter()
            .filter(|tenure| tenure.phase() == Phase::Releasing);
        let releasing: Vec<TenureId> = releasing.map(|tenure| tenure.id).collect();
        for id in releasing {
            self.tenures.turn(id, Phase::Stopped);
        }
    }

    /// A tenure is over.
    fn finish(&mut self, id: TenureId) {
        let Some(tenure) = self.tenures.remove(id) else {
            return;
        };
        let reason = tenure.stop.unwrap_or(StopReason::Lost);
        let now = self.now;
        self.log_ended(&tenure, reason);
        let unit = self.units.get_mut(tenure.unit);
        unit.tenure = None;
        unit.is_given_up = reason == StopReason::Shed;
        unit.seen = match tenure.is_lost {
            true => Seen::Unknown,
            false => Seen::Free {
                since: now,
                lapsed: None,
            },
        };
        if tenure.has_failed {
            self.start_failed(tenure.unit);
        } else {
            self.report(Report::Ended {
                key: tenure.key,
                reason,
            });
        }
        self.is_taking = true;
        self.are_grants_changed = true;
    }
}
