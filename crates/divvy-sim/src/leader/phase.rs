//! The phases of a world: faults, healing, quiet, and two last probes.

use std::time::Duration;

use divvy_core::Health;
use divvy_core::leader::{Event, HookEnd, Shutdown};
use divvy_core::store::{Key, Prefix};

use super::World;
use super::process::Lameness;
use crate::fact::{Fact, Phase, Survey};
use crate::invariants::Broken;
use crate::time::TrueTime;
use crate::world::{Arrival, Happening};

impl World {
    /// Lets the world run its course.
    pub fn run(&mut self) -> Result<(), Broken> {
        self.run_until(self.profile.faults_until)?;
        self.heal()?;
        self.run_until(self.now + self.profile.healing)?;
        self.survey()?;
        self.enter(Phase::Quiet)?;
        self.run_until(self.now + self.profile.quiet)?;
        self.survey()?;
        if let Some(until) = self.begin_probe()? {
            self.run_until(until)?;
            let until = self.begin_limp()?;
            self.run_until(until)?;
        }
        self.enter(Phase::Over)
    }

    pub(super) fn enter(&mut self, phase: Phase) -> Result<(), Broken> {
        self.note(|| format!("{phase:?}"));
        self.phase = phase;
        self.tell(&Fact::Entered(phase))
    }

    /// No fault happens any more, and those that last are over.
    pub(super) fn heal(&mut self) -> Result<(), Broken> {
        self.enter(Phase::Healing)?;
        self.active.clear();
        self.settle()?;
        self.reach.recover(self.now);
        self.own.agent.turn_honest();
        for member in 0..self.processes.len() {
            self.revive(member)?;
        }
        // The application knows that the source is well again.
        let alive = (0..self.processes.len()).find(|&member| {
            let process = &self.processes[member];
            process.is_alive() && !process.stopping
        });
        if let Some(member) = alive {
            let arrival = Arrival::Event(Event::RefreshRequested);
            self.arrive(member, arrival)?;
        }
        Ok(())
    }

    /// A process that stands still goes on, one that is gone comes back, and
    /// hooks that were stuck return.
    fn revive(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        if let Some(still) = &mut process.stillness {
            still.until = self.now;
            self.resume(member)?;
        }
        let process = &mut self.processes[member];
        if process.stopping {
            process.comes_back = Some(Duration::ZERO);
        }
        if !process.is_alive() {
            self.after(Duration::ZERO, Happening::Boot(member));
            return Ok(());
        }
        let generation = process.generation;
        let calls = process.calls.iter();
        let stuck: Vec<_> = calls
            .filter(|(_, call)| call.stuck)
            .map(|(&id, _)| id)
            .collect();
        for id in stuck {
            let arrival = Arrival::Hook(id, HookEnd::Done);
            let after = self.way();
            self.after(after, Happening::Arrive(member, generation, arrival));
        }
        Ok(())
    }

    /// Ends the process of a member for good, as a crash does. Gives what it
    /// ran.
    pub fn kill(&mut self, place: usize) -> Result<Vec<usize>, Broken> {
        let lost = self.running_at(place);
        self.end(place, false)?;
        Ok(lost)
    }

    /// The partitions that run at a place.
    pub fn running_at(&self, place: usize) -> Vec<usize> {
        self.processes[place].running.keys().copied().collect()
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
        self.note(|| format!("seen from above: {survey:?}"));
        self.tell(&Fact::Surveyed(&survey))
    }

    /// A sound cluster loses a worker while another joins: no window holds
    /// back what the lost one ran.
    /// Gives when that must be over; nothing if there was nobody to do without.
    pub(super) fn begin_probe(&mut self) -> Result<Option<TrueTime>, Broken> {
        self.enter(Phase::Probe)?;
        let within = self.profile.handed_on_within() + self.profile.settings.grace;
        let alive = self.processes.iter().enumerate();
        let alive: Vec<usize> = alive
            .filter(|(_, process)| process.is_alive())
            .map(|(member, _)| member)
            .collect();
        let victim = alive[self.dice.below(alive.len())];
        if alive.len() < 3 {
            return Ok(None);
        }
        let lost: Vec<usize> = self.processes[victim].running.keys().copied().collect();
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
        let alive: Vec<usize> = (0..self.processes.len())
            .filter(|&member| self.processes[member].is_alive())
            .collect();
        let first = self.dice.below(alive.len());
        let second = (first + 1 + self.dice.below(alive.len() - 1)) % alive.len();
        let (victim, lame) = (alive[first], alive[second]);
        self.own.lame.insert(lame, Lameness::Everything);
        let lost: Vec<usize> = self.processes[victim].running.keys().copied().collect();
        let by = self.now + self.profile.taken_over_within();
        self.tell(&Fact::Limping {
            partitions: &lost,
            by,
        })?;
        self.end(victim, false)?;
        Ok(by + self.profile.settings.root_poll_interval)
    }
}
