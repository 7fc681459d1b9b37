//! The phases of a world: faults, healing, quiet, and two last probes.

use std::time::Duration;

use divvy_core::Health;
use divvy_core::leader::{Event, Shutdown};
use divvy_core::store::{Key, Prefix};

use super::World;
use super::process::Lameness;
use crate::fact::{Fact, Phase, Survey};
use crate::invariants::Broken;
use crate::time::TrueTime;

impl World {
    /// No fault happens any more, and those that last are over.
    pub(super) fn heal(&mut self) -> Result<(), Broken> {
        self.end_faults()?;
        self.own.agent.turn_honest();
        self.end_overrides();
        self.revive_all()?;
        // The application knows that the source is well again.
        let alive = (0..self.processes.len()).find(|&member| {
            let process = &self.processes[member];
            process.is_alive() && !process.stopping
        });
        if let Some(member) = alive {
            self.refresh(member)?;
        }
        Ok(())
    }

    /// A member leaves to come back after it has been `away`, and asks for its
    /// place to be kept.
    pub fn restart(&mut self, place: usize, within: Duration, away: Duration) {
        self.ask_to_stop(place, Event::Stop(Shutdown::Return { within }), away);
    }

    /// Looks at everything from above.
    pub(super) fn survey(&mut self) -> Result<(), Broken> {
        let mut survey = Survey::default();
        let wanted = self.own.source.count();
        survey.running = (0..wanted).map(|number| (number, Vec::new())).collect();
        for (member, process) in self.processes.iter().enumerate() {
            let Some(machine) = &process.machine else {
                continue;
            };
            let description = &process.host.description;
            let eligible = description.health == Health::Healthy && description.weight > 0.0;
            survey.eligible |= eligible;
            if eligible && process.running.is_empty() && !process.stopping {
                survey.idle.push(member);
            }
            if machine.is_leader() {
                survey.leaders.push(member);
            }
            for (number, _) in process.working(self.now) {
                match survey.running.get_mut(number) {
                    Some((_, members)) => members.push(member),
                    None => survey.unwanted.push(number),
                }
            }
        }
        if !self.profile.shares_with_all(wanted, self.processes.len()) {
            survey.idle.clear();
        }
        let chunks = Key::new(["c"]).expect("a valid key");
        survey.chunks = self.store.table.list(&Prefix::below(chunks)).len();
        self.tell_survey(&survey)
    }

    /// A sound cluster loses a worker while another joins: no window holds
    /// back what the lost one ran.
    /// Gives when that must be over; nothing if there was nobody to do without.
    pub(super) fn begin_probe(&mut self) -> Result<Option<TrueTime>, Broken> {
        self.enter(Phase::Probe)?;
        let within = self.profile.handed_on_within() + self.profile.settings.grace;
        let alive = self.alive();
        let victim = alive[self.dice.below(alive.len())];
        if alive.len() < 3 {
            return Ok(None);
        }
        let lost = self.running_at(victim);
        self.add_member();
        let by = self.now + within;
        self.tell(&Fact::Lost {
            partitions: &lost,
            by,
        })?;
        self.end(victim, false)?;
        Ok(Some(by + self.profile.settings.root_poll_interval))
    }

    /// It loses another, and one of those who are left can start nothing: the
    /// third does. Gives when that must be over.
    pub(super) fn begin_limp(&mut self) -> Result<TrueTime, Broken> {
        self.enter(Phase::Limp)?;
        let alive = self.alive();
        let first = self.dice.below(alive.len());
        let second = (first + 1 + self.dice.below(alive.len() - 1)) % alive.len();
        let (victim, lame) = (alive[first], alive[second]);
        self.own.lame.insert(lame, Lameness::Everything);
        let lost = self.running_at(victim);
        let by = self.now + self.profile.taken_over_within();
        self.tell(&Fact::Limping {
            partitions: &lost,
            by,
        })?;
        self.end(victim, false)?;
        Ok(by + self.profile.settings.root_poll_interval)
    }
}
