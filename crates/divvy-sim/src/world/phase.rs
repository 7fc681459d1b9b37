//! The phases of a world, and how faults end with the first.

use std::time::Duration;

use divvy_core::leader::HookEnd;

use super::coordination::Coordination;
use super::process::Arrival;
use super::{Happening, WorldOf};
use crate::fact::{Fact, Phase, Survey};
use crate::invariants::Broken;

impl<C: Coordination> WorldOf<C> {
    pub(crate) fn enter(&mut self, phase: Phase) -> Result<(), Broken> {
        self.note(|| format!("{phase:?}"));
        self.phase = phase;
        self.tell(&Fact::Entered(phase))
    }

    /// No fault happens any more, and those that last are over.
    pub(crate) fn end_faults(&mut self) -> Result<(), Broken> {
        self.enter(Phase::Healing)?;
        self.active.clear();
        C::settle_faults(self)?;
        self.reach.recover(self.now);
        Ok(())
    }

    /// All processes that should be there are, and go on.
    pub(crate) fn revive_all(&mut self) -> Result<(), Broken> {
        for member in 0..self.processes.len() {
            if self.processes[member].is_namesake {
                self.end(member, false)?;
            } else {
                self.revive(member)?;
            }
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

    /// Tells what is seen from above.
    pub(crate) fn tell_survey(&mut self, survey: &Survey) -> Result<(), Broken> {
        self.note(|| format!("seen from above: {survey:?}"));
        self.tell(&Fact::Surveyed(survey))
    }

    /// Who is there.
    pub(crate) fn alive(&self) -> Vec<usize> {
        let members = 0..self.processes.len();
        members
            .filter(|&member| self.processes[member].is_alive())
            .collect()
    }

    /// The partitions that run at a place.
    pub fn running_at(&self, place: usize) -> Vec<usize> {
        self.processes[place].running.keys().copied().collect()
    }

    /// Ends the process of a member for good, as a crash does. Gives what it
    /// ran.
    pub fn kill(&mut self, place: usize) -> Result<Vec<usize>, Broken> {
        let lost = self.running_at(place);
        self.end(place, false)?;
        Ok(lost)
    }
}
