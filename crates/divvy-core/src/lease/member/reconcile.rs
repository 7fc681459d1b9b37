//! Looking at everything: who is alive, which groups there are, who holds
//! what.

use std::time::Duration;

use super::backoff::Backoff;
use super::operations::Purpose;
use super::placement;
use super::roster::Peer;
use super::timers::Timer;
use super::units::Seen;
use super::wishes::News;
use super::{Life, Member};
use crate::lease::action::{Operation, Report, StopReason};
use crate::lease::defect::Defect;
use crate::store::{self, GroupDocument, Holder, LeaseKey, WorkerId, WorkerInfo};

/// Units of groups that are gone are forgotten once there are more of them
/// than this, and than of those that are served.
const UNSERVED_MAX: usize = 10_000;

impl Member {
    /// Everything may have changed unseen.
    pub(super) fn resync(&mut self) {
        self.read_groups();
        self.reconcile_soon();
    }

    /// Something changed: look at everything, together with what else changes
    /// at about the same time.
    pub(super) fn reconcile_soon(&mut self) {
        let pause = self.setup.settings.reconcile_interval / 100;
        let pause = pause.clamp(Duration::from_millis(2), Duration::from_millis(50));
        let pause = pause + self.random.within(pause);
        let at = self.backoff.until(self.now).unwrap_or(self.now) + pause;
        self.timers.set_earlier(Timer::Reconcile, at);
    }

    pub(super) fn reconcile(&mut self) {
        let settings = &self.setup.settings;
        let interval = settings.reconcile_interval;
        let spread = interval.mul_f64(settings.reconcile_jitter);
        let next = interval.saturating_sub(spread) + self.random.within(spread * 2);
        if let Some(until) = self.backoff.until(self.now) {
            self.timers.set(Timer::Reconcile, until);
            return;
        }
        self.timers.set(Timer::Reconcile, self.now + next);
        if self.open_nonce().is_none() || self.life != Life::Live {
            return;
        }
        if self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Members))
        {
            return;
        }
        let timeout = self.setup.settings.operation_timeout;
        self.send(Purpose::Members, Operation::Members, timeout);
    }

    pub(super) fn members_read(&mut self, members: &[store::Member], wishes: Option<&str>) {
        let interval = self.setup.settings.reconcile_interval;
        if self.backoff.is_calm(self.now, interval) && !self.is_kept_from_taking() {
            self.backoff = Backoff::default();
            self.report(Report::Recovered);
        }
        if self.life != Life::Live || self.is_unlisted(members) {
            return;
        }
        let mut infos = members.iter().filter_map(|member| member.info.as_deref());
        if self.is_planted(Defect::GiveUpListing)
            && infos.any(|info| WorkerInfo::from_json(info).is_err())
        {
            return;
        }
        let news = self.wishes.read(wishes);
        let before = self.roster.peers().to_vec();
        let (info, weight) = (self.info(), self.setup.settings.default_weight);
        let problems = self
            .roster
            .update(&self.setup.worker, &info, weight, members, &self.wishes);
        for problem in problems {
            self.problem(problem);
        }
        for peer in self.roster.peers() {
            let lease = peer.info.lease_ttl_ms.map(Duration::from_millis);
            self.quarantine.cover(lease.unwrap_or_default());
        }
        let is_over = self.roster.numbers_are_new && self.now >= self.numbers_count_from;
        self.roster.numbers_are_new &= !is_over;
        if self.roster.peers() != before || !self.is_roster_known {
            self.is_roster_known = true;
            self.roster_changed = self.now;
            let names = |peers: &[Peer]| -> Vec<Box<str>> {
                peers.iter().map(|peer| peer.name.clone()).collect()
            };
            let (was, is) = (names(&before), names(self.roster.peers()));
            // That one weighs something else is nobody's coming or going.
            if was != is {
                self.report(Report::Members(is));
            }
            self.place();
        } else if news != News::None || is_over {
            // Pins, which no peer tells of.
            self.place();
        }
        let lasting = (self.now, self.setup.settings.reconcile_interval);
        let disagreements = self
            .disagreements
            .look(lasting, self.groups.served(), &self.roster);
        for disagreement in disagreements {
            self.problem(disagreement);
        }
        match news {
            News::None | News::Changed => {}
            News::Refresh => self.read_groups(),
            News::Unreadable(why) => self.problem(format!(
                "what operators wish, divvy:wishes:{} in Redis, is not readable, and the last good is \
                 kept: {why}",
                self.setup.worker.cluster
            )),
        }
        self.round += 1;
        self.look_round();
        self.shed();
        self.is_taking = true;
    }

    /// Whether this worker is not among those who are alive. It has been silent
    /// for too long, and so may all others have been: its next heartbeat tells
    /// whether it still has its name, and what was read is read again then.
    fn is_unlisted(&mut self, members: &[store::Member]) -> bool {
        let name = self.setup.worker.name.as_str();
        self.is_unlisted = !members.iter().any(|member| member.name == name);
        let is_beating = self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Beat(_)));
        if self.is_unlisted && !is_beating {
            self.beat();
        }
        self.is_unlisted
    }

    /// Reads the documents of groups, if they count.
    pub(super) fn read_groups(&mut self) {
        if !self.setup.dynamic || self.life != Life::Live {
            return;
        }
        let next = self.now + self.setup.settings.config_refresh_interval;
        self.timers.set(Timer::Config, next);
        if self
            .operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Groups))
        {
            // What it reads may be older than what was announced.
            let soon = self.now + self.setup.settings.renewal_retry();
            self.timers.set_earlier(Timer::Config, soon);
            return;
        }
        let timeout = self.setup.settings.operation_timeout;
        self.send(Purpose::Groups, Operation::Groups, timeout);
    }

    pub(super) fn groups_read(&mut self, documents: &[GroupDocument]) {
        let is_first = self.groups.is_unread();
        let (is_changed, problems) = self.groups.read(documents);
        if is_first && documents.is_empty() && self.groups.served().is_empty() {
            self.problem("the store has no workloads yet: divvy workload set NAME N adds one");
        }
        for problem in problems {
            self.problem(problem);
        }
        if is_changed {
            self.regrouped();
        }
    }

    /// Other groups are served than before.
    pub(super) fn regrouped(&mut self) {
        let groups = self.groups.served().iter();
        let groups = groups.map(|group| (group.name().as_str().into(), group.partitions()));
        let report = Report::Groups(groups.collect());
        self.report(report);
        // Others say in a moment how many units they know of.
        let moment = self.setup.settings.start_window / 3;
        let since = self.joined.map(|_| self.now + moment);
        self.roster.numbers_are_new = self.joined.is_some();
        self.numbers_count_from = self.now + self.setup.settings.reconcile_interval;
        self.units.serve_from(self.groups.served(), since);
        if !self.is_planted(Defect::KeepUnwanted) {
            let units = &self.units;
            let is_unwanted = |unit: u32| units.get(unit).group.is_none();
            let tenures = self.tenures.iter();
            let unwanted: Vec<_> = tenures
                .filter(|tenure| is_unwanted(tenure.unit))
                .map(|tenure| tenure.id)
                .collect();
            for id in unwanted {
                self.stop_tenure(id, StopReason::Unwanted);
            }
        }
        self.forget_unserved();
        // The others go by which groups this worker says it serves.
        self.beat();
        self.place();
        self.reconcile_soon();
    }

    fn forget_unserved(&mut self) {
        let unserved = self.units.unserved();
        let names_units = |purpose: &Purpose| {
            matches!(
                purpose,
                Purpose::Look(_) | Purpose::Acquire(..) | Purpose::Adopt(..)
            )
        };
        let is_much = unserved > UNSERVED_MAX && unserved * 2 > self.units.len();
        if !is_much || self.operations.is_under_way(names_units) {
            return;
        }
        let renumbered = self.units.compact();
        for tenure in self.tenures.iter_mut() {
            let number = renumbered[tenure.unit as usize];
            tenure.unit = number.expect("units with a tenure are kept");
        }
    }

    /// Decides anew who should have what.
    fn place(&mut self) {
        if !self.is_roster_known {
            return;
        }
        let looks_at_served = !self.is_planted(Defect::IgnoreServed);
        let looks_at_room = !self.is_planted(Defect::IgnoreRoom);
        placement::place_all(
            &mut self.units,
            self.groups.served(),
            &self.roster,
            (&self.wishes, &self.hashes),
            (looks_at_served, looks_at_room),
        );
        for unit in self.units.iter_mut() {
            // What was in vain with others may not be with these.
            unit.vain = 0;
            unit.keep_until = None;
            unit.is_given_up = false;
        }
        self.is_taking = true;
    }

    /// Looks at leases that this worker may have to take: at those that it is
    /// first or second for in every round, and at others the more seldom, the
    /// more come before it.
    fn look_round(&mut self) {
        if !self.is_eligible() {
            return;
        }
        let (me, round) = (self.roster.me(), self.round);
        let is_due = |rank: Option<u32>| match rank {
            None => false,
            Some(0 | 1) => true,
            Some(rank) => round % u64::from(rank) == 0 || round == 1,
        };
        let units = self.units.iter().filter(|(_, unit)| unit.is_takeable());
        let units = units.filter(|(_, unit)| {
            unit.place.desired == Some(me) || is_due(unit.place.rank) || unit.doubt.is_some()
        });
        let units = units.map(|(number, _)| number).collect();
        self.is_round_missed = self.is_looking();
        self.look(units);
    }

    fn is_looking(&self) -> bool {
        self.operations
            .is_under_way(|purpose| matches!(purpose, Purpose::Look(_)))
    }

    pub(super) fn look(&mut self, units: Vec<u32>) {
        if self.is_looking() {
            return;
        }
        let timeout = self.setup.settings.operation_timeout;
        for units in units.chunks(self.setup.batches.looks) {
            let keys = units.iter().map(|unit| self.units.get(*unit).key.clone());
            let operation = Operation::Holders(keys.collect());
            self.send(Purpose::Look(units.to_vec()), operation, timeout);
        }
    }

    /// Leases that were not renewed may be over.
    pub(super) fn look_at_late(&mut self) {
        if !self.is_eligible() || self.backoff.is_active(self.now) {
            return;
        }
        let is_over = |seen: &Seen| matches!(seen, Seen::Held { until, is_late: true, .. } if *until <= self.now);
        let units = self.units.iter();
        let late = units.filter(|(_, unit)| unit.is_takeable() && is_over(&unit.seen));
        let late: Vec<u32> = late.map(|(number, _)| number).collect();
        if self.is_looking() {
            let soon = self.now + Duration::from_millis(5);
            self.timers.set_earlier(Timer::Lapse, soon);
            return;
        }
        self.look(late);
        self.set_lapse_timer();
    }

    fn set_lapse_timer(&mut self) {
        // What ran out while another look was under way is looked at soon.
        let soon = self.now + Duration::from_millis(4);
        let late = self.units.iter().filter_map(|(_, unit)| match unit.seen {
            Seen::Held {
                until,
                is_late: true,
                ..
            } if unit.is_takeable() => Some(if until > self.now { until } else { soon }),
            _ => None,
        });
        let next = late.min();
        self.timers.put(
            Timer::Lapse,
            next.map(|next| next + Duration::from_millis(1)),
        );
    }

    /// Who holds what was read.
    pub(super) fn looked(&mut self, units: &[u32], holders: Vec<Option<Holder>>) {
        let settings = &self.setup.settings;
        let late_below = settings
            .lease_ttl
            .saturating_sub(settings.renew_interval * 3 / 2);
        // Clocks differ: what is free a little before its time has run out.
        let drift = settings.lease_ttl / 20;
        let now = self.now;
        let mut names = holders.iter().flatten().map(|holder| &holder.worker);
        if self.is_planted(Defect::GiveUpListing)
            && names.any(|name| name.parse::<WorkerId>().is_err())
        {
            return;
        }
        let mut adoptable = Vec::new();
        let mut problems = Vec::new();
        for (&number, holder) in units.iter().zip(holders) {
            let unit = self.units.get_mut(number);
            if !unit.is_takeable() {
                continue;
            }
            let Some(holder) = holder else {
                unit.doubt = None;
                unit.seen = match std::mem::replace(&mut unit.seen, Seen::Unknown) {
                    Seen::Free { since, lapsed } => Seen::Free { since, lapsed },
                    Seen::Held { by, until, is_late } => Seen::Free {
                        since: now,
                        lapsed: (is_late || until <= now + drift).then_some(by),
                    },
                    Seen::Unknown => Seen::Free {
                        since: now,
                        lapsed: None,
                    },
                };
                continue;
            };
            let is_mine = holder.worker == self.setup.worker.to_string();
            let doubt = unit.doubt.take();
            if let Some((token, nonce)) = holder.fence
                && is_mine
                && (doubt == Some(nonce) || self.defect == Some(Defect::AdoptForeign))
            {
                adoptable.push((number, nonce, token));
                continue;
            }
            let worker = &self.setup.worker;
            problems.extend(self.strangers.meet(worker, &unit.key, &holder));
            let desired = unit.place.desired;
            let desired = desired.map(|peer| &*self.roster.peers()[peer as usize].id);
            unit.is_given_up &= desired != Some(holder.worker.as_str());
            unit.seen = Seen::Held {
                by: holder.worker.into(),
                until: now + holder.left,
                // What an earlier process of this name held, nobody renews.
                is_late: is_mine || holder.left < late_below,
            };
        }
        for problem in problems {
            self.problem(problem);
        }
        for (number, nonce, token) in adoptable {
            self.adopt(number, nonce, token);
        }
        self.set_lapse_timer();
        if self.is_round_missed {
            self.look_round();
        }
        self.is_taking = true;
    }

    /// A lease was given back, it is said.
    pub(super) fn seen_released(&mut self, key: &LeaseKey) {
        let Some(number) = self.units.find(key) else {
            return;
        };
        let now = self.now;
        let unit = self.units.get_mut(number);
        if !unit.is_takeable() {
            return;
        }
        if !matches!(unit.seen, Seen::Free { .. }) {
            unit.seen = Seen::Free {
                since: now,
                lapsed: None,
            };
        }
        // Many are given back together: take them together, too.
        let soon = now + Duration::from_millis(2);
        self.timers.set_earlier(Timer::Take, soon);
    }
}
