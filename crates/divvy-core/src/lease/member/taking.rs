//! Taking leases that nobody holds.

use std::time::Duration;

use super::Member;
use super::backoff;
use super::operations::Purpose;
use super::tenure::{Attempt, Phase, Tenure};
use super::timers::Timer;
use super::units::{Seen, Unit};
use crate::lease::action::{Action, Operation, Report, StopReason};
use crate::lease::defect::Defect;
use crate::moment::Moment;
use crate::store::{self, Acquired, Claim, LeaseKey, Nonce, StoreErrorKind, Token};

/// Times that a unit is given up for one that does not take it.
const VAIN_MAX: u32 = 2;

/// How much this worker may still take.
pub(super) struct Room {
    left: Option<u32>,
    /// By the number of the group.
    left_in: Vec<Option<u32>>,
}

impl Room {
    /// That of a worker that has nothing.
    pub(super) fn of_empty(member: &Member) -> Self {
        let settings = &member.setup.settings;
        let limit = |most: u32| (most > 0).then_some(most);
        let groups = member.groups.served().iter();
        Self {
            left: limit(settings.max_partitions),
            left_in: groups
                .map(|group| {
                    let limits = [limit(settings.max_per_group), group.max_per_worker()];
                    limits.into_iter().flatten().min()
                })
                .collect(),
        }
    }

    pub(super) fn of(member: &Member) -> Self {
        let mut room = Self::of_empty(member);
        if room.is_unlimited() {
            return room;
        }
        let had = member.tenures.iter().map(|tenure| tenure.unit);
        // What is in doubt may turn out to be there.
        let wished = member.units.iter().filter(|(_, unit)| {
            let is_doubtful = unit.doubt.is_some() && unit.group.is_some();
            unit.is_wished || is_doubtful && unit.tenure.is_none()
        });
        let groups = member.groups.served();
        for unit in had.chain(wished.map(|(number, _)| number)) {
            let unit = member.units.get(unit);
            // What a group has lost counts for it until it has stopped.
            let of_group = |name| groups.binary_search_by(|group| group.name().cmp(name));
            let lost = || of_group(&unit.key.group).ok().map(|index| index as u32);
            room.fill(unit.group.or_else(lost));
        }
        room
    }

    pub(super) fn is_unlimited(&self) -> bool {
        self.left.is_none() && self.left_in.iter().all(Option::is_none)
    }

    pub(super) fn is_there(&self, unit: &Unit) -> bool {
        let in_group = unit.group.and_then(|group| self.left_in[group as usize]);
        self.left != Some(0) && in_group != Some(0)
    }

    pub(super) fn fill(&mut self, group: Option<u32>) {
        let take = |left: &mut Option<u32>| {
            if let Some(left) = left {
                *left = left.saturating_sub(1);
            }
        };
        take(&mut self.left);
        if let Some(group) = group {
            take(&mut self.left_in[group as usize]);
        }
    }
}

impl Member {
    /// Takes what may be taken now, and looks again when more may be.
    pub(super) fn take(&mut self) {
        if !self.may_take() {
            return;
        }
        self.pace();
        let mut room = Room::of(self);
        let mut chosen = Vec::new();
        let mut next: Option<Moment> = None;
        let mut doubtful = Vec::new();
        for (number, unit) in self.units.iter().filter(|(_, unit)| unit.is_takeable()) {
            if unit.doubt.is_some() {
                doubtful.push(number);
                continue;
            }
            let Some((at, is_mine)) = self.takes_at(unit) else {
                continue;
            };
            if at > self.now {
                next = Some(next.map_or(at, |next| next.min(at)));
            } else if room.is_there(unit) {
                room.fill(unit.group);
                chosen.push((number, is_mine));
            }
        }
        let most = self.setup.settings.acquires_per_reconcile;
        chosen.retain(|(_, is_mine)| {
            let is_paced = !is_mine && most > 0 && self.taken_for_others >= most;
            self.taken_for_others += u32::from(!is_mine);
            !is_paced
        });
        if let Some(next) = next {
            self.timers.set_earlier(Timer::Take, next);
        }
        if !doubtful.is_empty() {
            self.look(doubtful);
        }
        let chosen: Vec<u32> = chosen.into_iter().map(|(number, _)| number).collect();
        for units in chosen.chunks(self.setup.batches.acquires) {
            self.wish(units);
        }
    }

    fn may_take(&mut self) -> bool {
        let is_free = self.is_eligible() && !self.is_cordoned();
        let is_known = self.is_roster_known && !self.is_unlisted;
        if !is_free || self.open_nonce().is_none() || !is_known {
            return false;
        }
        if let Some(until) = self.backoff.until(self.now) {
            self.timers.set_earlier(Timer::Take, until);
            return false;
        }
        // A heartbeat's answer tells when it is over.
        self.quarantine.is_over() && self.has_waited()
    }

    /// Whether those that start together with this worker, or were there when
    /// it lost its name, have had the time to come: what it takes before them,
    /// it would have to give up again.
    fn has_waited(&mut self) -> bool {
        let (Some(joined), false) = (self.joined, self.is_window_over) else {
            return self.joined.is_some();
        };
        let settings = &self.setup.settings;
        let window = settings.start_window;
        let peers = self.roster.peers();
        let mut missed = self.missed.iter();
        let are_back = missed.all(|name| peers.iter().any(|peer| peer.name == *name));
        let end = match window.is_zero() || are_back {
            true if !self.missed.is_empty() => joined,
            true => (joined + window).min(self.roster_changed + window / 3),
            // They come when their last question to the store has run out.
            false => joined + window + settings.renewal_try(),
        };
        self.is_window_over = end <= self.now;
        match self.is_window_over {
            true => self.missed.clear(),
            false => self.timers.set_earlier(Timer::Take, end),
        }
        self.is_window_over
    }

    /// When this worker takes a unit, if it does as things are, and whether it
    /// is the one that should have it.
    fn takes_at(&self, unit: &Unit) -> Option<(Moment, bool)> {
        let Seen::Free { since, lapsed } = &unit.seen else {
            return None;
        };
        let not_before = unit.not_before.unwrap_or(*since);
        if unit.place.desired == Some(self.roster.me()) {
            return Some((not_before, true));
        }
        if self.is_planted(Defect::NeverStandIn) {
            return None;
        }
        let mut before = unit.place.rank?;
        // Whoever let its lease run out is not waited for.
        if let Some(gone) = lapsed.as_deref().and_then(|id| self.roster.find(id)) {
            before = before.saturating_sub(1);
            if before == 0 && unit.place.desired == Some(gone) {
                return Some((not_before, true));
            }
        }
        let patience = self.setup.settings.reconcile_interval;
        let at = *since + patience.saturating_mul(before.max(1));
        Some((at.max(not_before), false))
    }

    /// Whether the store failed to grant, and something is still to be taken.
    pub(super) fn is_kept_from_taking(&self) -> bool {
        let acquire = Purpose::Acquire(Vec::new(), self.now);
        let mut units = self.units.iter().filter(|(_, unit)| unit.is_takeable());
        self.backoff.has_failed(&acquire) && units.any(|(_, unit)| self.takes_at(unit).is_some())
    }

    /// What is paced begins anew with every interval.
    pub(super) fn pace(&mut self) {
        if self.now.since(self.pace_since) >= self.setup.settings.reconcile_interval {
            self.pace_since = self.now;
            self.taken_for_others = 0;
            self.given_up = 0;
        }
    }

    fn wish(&mut self, units: &[u32]) {
        let mut attempts = Vec::with_capacity(units.len());
        let mut claims = Vec::with_capacity(units.len());
        for &unit in units {
            let nonce = self.nonce();
            let wished = self.units.get_mut(unit);
            wished.is_wished = true;
            let key = wished.key.clone();
            claims.push(Claim { key, nonce });
            attempts.push(Attempt {
                unit,
                nonce,
                token: None,
            });
        }
        let ttl = self.setup.settings.lease_ttl;
        let timeout = self.setup.settings.operation_timeout.min(ttl / 2);
        let purpose = Purpose::Acquire(attempts, self.now);
        self.send(purpose, Operation::Acquire { claims, ttl }, timeout);
    }

    pub(super) fn acquired(&mut self, attempts: &[Attempt], sent: Moment, answers: Vec<Acquired>) {
        for attempt in attempts {
            self.units.get_mut(attempt.unit).is_wished = false;
        }
        let mut room = Room::of(self);
        let mut moved = Vec::new();
        for (attempt, answer) in attempts.iter().zip(answers) {
            let unit = self.units.get_mut(attempt.unit);
            match answer {
                Acquired::Granted(token) => {
                    moved.push(unit.key.clone());
                    self.granted(*attempt, token, sent, &mut room);
                }
                Acquired::Held => unit.seen = Seen::Unknown,
                Acquired::Quarantined => self.quarantine_met(),
            }
        }
        self.mark_moved(moved);
    }

    pub(super) fn mark_moved(&mut self, keys: Vec<LeaseKey>) {
        let cooldown = self.setup.settings.move_cooldown;
        if keys.is_empty() || cooldown.is_zero() {
            return;
        }
        let timeout = self.setup.settings.operation_timeout;
        let operation = Operation::MarkMoved { keys, cooldown };
        self.send(Purpose::Mark, operation, timeout);
    }

    pub(super) fn acquire_failed(
        &mut self,
        attempts: &[Attempt],
        sent: Moment,
        kind: StoreErrorKind,
    ) {
        for attempt in attempts {
            let unit = self.units.get_mut(attempt.unit);
            unit.is_wished = false;
            unit.seen = Seen::Unknown;
            if kind != StoreErrorKind::Unknown {
                continue;
            }
            unit.doubt = Some(attempt.nonce);
            if self.is_planted(Defect::AssumeGranted)
                && let Some(token) = Token::new(1)
            {
                let mut room = Room::of(self);
                self.granted(*attempt, token, sent, &mut room);
            }
        }
        let soon = self.backoff.until(self.now).unwrap_or(self.now);
        self.timers
            .set_earlier(Timer::Take, soon + Duration::from_millis(1));
    }

    /// A wish that was not answered has been granted, it seems: a renewal
    /// tells, and its time counts.
    pub(super) fn adopt(&mut self, unit: u32, nonce: Nonce, token: Token) {
        let known = self.units.get_mut(unit);
        known.is_wished = true;
        let claims = vec![Claim {
            key: known.key.clone(),
            nonce,
        }];
        let attempt = Attempt {
            unit,
            nonce,
            token: Some(token),
        };
        let ttl = self.setup.settings.lease_ttl;
        let timeout = self.setup.settings.renewal_try();
        let purpose = Purpose::Adopt(attempt, self.now);
        self.send(purpose, Operation::Renew { claims, ttl }, timeout);
    }

    pub(super) fn adopted(
        &mut self,
        attempt: Attempt,
        sent: Moment,
        tenure: Option<store::Tenure>,
    ) {
        let unit = self.units.get_mut(attempt.unit);
        unit.is_wished = false;
        unit.seen = Seen::Unknown;
        if let (Some(store::Tenure::Current), Some(token)) = (tenure, attempt.token) {
            let mut room = Room::of(self);
            self.granted(attempt, token, sent, &mut room);
        }
    }

    /// A lease is this worker's, by what was sent then. It is given back where
    /// the room that it was asked for is not there any more: limits change, and
    /// a lease in doubt counts for nothing while its group is gone.
    fn granted(&mut self, attempt: Attempt, token: Token, sent: Moment, room: &mut Room) {
        let has_room = room.is_there(self.units.get(attempt.unit));
        room.fill(self.units.get(attempt.unit).group);
        let until = self.grant_end(sent);
        let me = self.roster.me();
        let now = self.now;
        let key = self.units.get(attempt.unit).key.clone();
        let (granted, spans) = ((attempt.nonce, token), (now, until));
        let of = (attempt.unit, key.clone());
        let id = self.tenures.add(|id| Tenure::new(id, of, granted, spans));
        let unit = self.units.get(attempt.unit).clone();
        self.log_taken(&unit, token);
        let settings = &self.setup.settings;
        let keep = settings.move_cooldown.max(settings.reconcile_interval);
        let unit = self.units.get_mut(attempt.unit);
        unit.tenure = Some(id);
        unit.doubt = None;
        unit.seen = Seen::Unknown;
        let desired = unit.place.desired == Some(me);
        if std::mem::take(&mut unit.is_given_up) && !desired {
            // Who should have it did not take it: once more after a while, and
            // then not before something changes.
            unit.vain += 1;
            unit.keep_until = Some(match unit.vain < VAIN_MAX {
                true => now + keep * 2,
                false => Moment::from_origin(Duration::MAX),
            });
        }
        let is_wanted = unit.group.is_some();
        self.report(Report::Acquired {
            key,
            token,
            desired,
        });
        let is_late = self.now + self.setup.settings.drain_ahead() >= until
            && !self.is_planted(Defect::StartLate);
        let is_stopped = !self.is_eligible() && !self.is_planted(Defect::StartWhileStopping);
        if !is_wanted || is_late || !has_room || is_stopped {
            let reason = match (is_wanted, self.is_eligible()) {
                (false, _) => StopReason::Unwanted,
                (_, false) => StopReason::Shutdown,
                _ if !has_room => StopReason::Shed,
                _ => StopReason::Unrenewed,
            };
            let tenure = self.tenures.get_mut(id).expect("just added");
            tenure.stop = Some(reason);
            tenure.is_void = true;
            return;
        }
        self.start_tenure(id);
        // Its time counts from the question: where the answer took long, all
        // others were renewed since.
        let renew = sent + self.setup.settings.renew_interval;
        self.timers.set_earlier(Timer::Renew, renew);
        self.are_grants_changed = true;
    }

    pub(super) fn start_tenure(&mut self, id: crate::lease::action::TenureId) {
        let hook = self.tenures.call(id);
        let since = (!self.setup.hooks_wait).then_some(self.now);
        self.tenures.turn(id, Phase::Starting(hook, since));
        let tenure = self.tenures.get(id).expect("only tenures are started");
        self.actions.push_back(Action::StartPartition {
            id: hook,
            tenure: id,
            key: tenure.key.clone(),
            token: tenure.token,
            until: tenure.until,
        });
        self.watch_hook(id);
    }

    /// The start of a unit failed: it is left alone for a while.
    pub(super) fn start_failed(&mut self, unit: u32) {
        let settings = &self.setup.settings;
        let span = (settings.backoff, settings.backoff_max);
        let failures = self.units.get(unit).failures;
        let pause = backoff::pause(failures, span, &mut self.random);
        let until = self.now + pause + span.0 / 2;
        let unit = self.units.get_mut(unit);
        unit.failures = failures.saturating_add(1);
        unit.not_before = Some(until);
        let key = unit.key.clone();
        self.report(Report::StartFailed(key));
        self.timers.set_earlier(Timer::Take, until);
    }
}
