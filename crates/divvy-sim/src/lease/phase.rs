//! The phases of a world: faults, healing, quiet, and a last probe.

use std::collections::BTreeSet;
use std::time::Duration;

use divvy_core::lease::Event;

use super::{LeaseMode, LeaseWorld};
use crate::fact::{Fact, Phase, Survey};
use crate::invariants::Broken;
use crate::time::TrueTime;
use crate::world::Process;

impl LeaseWorld {
    /// No fault happens any more, and those that last are over.
    pub(super) fn heal(&mut self) -> Result<(), Broken> {
        self.end_faults()?;
        self.delete_spoilt()?;
        self.write_groups();
        self.write_wishes();
        self.revive_all()
    }

    /// Whether all is where it should be, or nothing moves any more.
    pub(super) fn is_settled(&self) -> bool {
        let at_rest = self.processes.iter().all(|process| match &process.machine {
            Some(machine) => {
                machine.session().is_some()
                    && process.calls.is_empty()
                    && !machine.backoff_active()
                    && machine.misaligned().next().is_none()
            }
            None => process.is_namesake,
        });
        let still = self.now.since(self.own.moved) >= self.profile.still();
        (at_rest || still) && self.seen_from_above().unserved.is_empty()
    }

    /// Asks a member to stop; it is started again after it has been `away`.
    pub fn restart(&mut self, place: usize, away: Duration) {
        self.ask_to_stop(place, Event::Stop, away);
    }

    /// Asks a member to stop for good. Gives what it ran.
    pub fn stop(&mut self, place: usize) -> Vec<usize> {
        let lost = self.running_at(place);
        self.ask_to_stop(place, Event::Stop, Duration::ZERO);
        self.processes[place].comes_back = None;
        lost
    }

    /// Whether a member may have partitions of a group.
    fn serves(&self, member: usize, group: usize) -> bool {
        let process = &self.processes[member];
        let may = process.is_alive()
            && !process.is_namesake
            && !process.stopping
            && process.host.description.healthy
            && process.host.description.weight > 0.0;
        let serves = &self.profile.plan_of(member).serves;
        may && (self.own.groups.is_stored(group) || serves.get(group).copied().unwrap_or(false))
    }

    /// How many partitions a member has, of how many that it may have: of all,
    /// and of one group.
    fn loads(&self, member: usize, group: usize) -> [(usize, Option<usize>); 2] {
        let (process, plan) = (&self.processes[member], self.profile.plan_of(member));
        let limit = |most: u32| (most > 0).then_some(most as usize);
        let same = |partition: &usize| self.own.groups.group_of(*partition) == group;
        let of_group = [
            limit(plan.limits.max_per_group),
            self.own.groups.most_of(group),
        ];
        [
            (process.owned().count(), limit(plan.limits.max_partitions)),
            (
                process.owned().filter(same).count(),
                of_group.into_iter().flatten().min(),
            ),
        ]
    }

    fn has_room(&self, member: usize, group: usize) -> bool {
        let loads = self.loads(member, group);
        let fits = |(owned, most): (usize, Option<usize>)| most.is_none_or(|most| owned < most);
        self.serves(member, group) && loads.into_iter().all(fits)
    }

    /// Whether a member has more than it may have, and more than it keeps at
    /// least: limits can be lowered.
    fn is_crowded(&self, member: usize, group: usize) -> bool {
        let loads = self.loads(member, group);
        let over = |(owned, most): (usize, Option<usize>)| most.is_some_and(|most| owned > most);
        let least = self.profile.plan_of(member).min_partitions as usize;
        self.profile.settings.shedding
            && loads[0].0 > least
            && self.serves(member, group)
            && loads.into_iter().any(over)
    }

    /// Whether a member may have all partitions of a group that there are.
    pub(super) fn is_unlimited(&self, member: usize, group: usize) -> bool {
        let mut loads = self.loads(member, group).into_iter();
        self.serves(member, group) && loads.all(|(_, most)| most.is_none())
    }

    fn seen_from_above(&self) -> Survey {
        let mut survey = Survey::default();
        let members = 0..self.processes.len();
        let wanted: BTreeSet<usize> = self.own.groups.wanted().collect();
        let working = |process: &Process<LeaseMode>| {
            let working = process.working(self.now).map(|(partition, _)| partition);
            working.collect::<BTreeSet<usize>>()
        };
        let at: Vec<_> = self.processes.iter().map(working).collect();
        for &partition in wanted.iter().filter(|it| !self.is_spoilt(**it)) {
            let group = self.own.groups.group_of(partition);
            let homes = members
                .clone()
                .filter(|&member| at[member].contains(&partition));
            let homes: Vec<usize> = homes.collect();
            if homes.is_empty() && members.clone().any(|member| self.has_room(member, group)) {
                survey.unserved.push(partition);
            }
            if members
                .clone()
                .any(|member| self.is_unlimited(member, group))
            {
                survey.running.push((partition, homes));
            }
        }
        survey.eligible = true;
        for member in members {
            let running = self.processes[member].running.keys();
            let unwanted = running.filter(|partition| !wanted.contains(partition));
            survey.unwanted.extend(unwanted);
            if (0..self.own.groups.count()).any(|group| self.is_crowded(member, group)) {
                survey.crowded.push(member);
            }
        }
        survey
    }

    /// Looks at everything from above.
    pub(super) fn survey(&mut self) -> Result<(), Broken> {
        let survey = self.seen_from_above();
        self.tell_survey(&survey)
    }

    /// Looks whether everything has been started once, though it may be on its
    /// way to where it should be.
    pub(super) fn survey_start(&mut self) -> Result<(), Broken> {
        let started = &self.own.started;
        let mut survey = self.seen_from_above();
        survey
            .unserved
            .retain(|partition| !started.contains(partition));
        survey
            .running
            .retain(|(partition, _)| !started.contains(partition));
        survey.crowded.clear();
        self.tell_survey(&survey)
    }

    /// A sound cluster loses a worker: what that ran is started elsewhere, as
    /// far as somebody may have it all. Gives when that must be over; nothing if
    /// there was nobody to do without.
    pub(super) fn begin_probe(&mut self) -> Result<Option<TrueTime>, Broken> {
        self.enter(Phase::Probe)?;
        let alive = self.alive();
        if alive.len() < 2 {
            return Ok(None);
        }
        let victim = alive[self.dice.below(alive.len())];
        let mut lost = self.running_at(victim);
        lost.retain(|&partition| {
            if self.is_spoilt(partition) {
                return false;
            }
            let group = self.own.groups.group_of(partition);
            let mut others = alive.iter().filter(|&&member| member != victim);
            others.any(|&member| self.is_unlimited(member, group))
        });
        let by = self.now + self.profile.handed_on_within();
        self.tell(&Fact::Lost {
            partitions: &lost,
            by,
        })?;
        self.end(victim, false)?;
        Ok(Some(by + self.profile.settings.heartbeat_interval))
    }
}
