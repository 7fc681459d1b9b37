//! The coming and going of processes.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::lease::{Ending, Event, Member, MemberSetup};

use super::LeaseWorld;
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::world::{Happening, Over};

/// How long a process whose member ended by policy stays away.
const RESTART_AFTER: Duration = Duration::from_millis(200);

impl LeaseWorld {
    /// A process is started, unless there is one.
    pub(super) fn boot(&mut self, member: usize) -> Result<(), Broken> {
        if self.processes[member].is_alive() {
            return Ok(());
        }
        self.note(|| format!("m{member} starts"));
        let process = &mut self.processes[member];
        process.clear();
        process.host.booted = self.now;
        let now = process.clock.at(self.now);
        let setup = MemberSetup {
            settings: self.profile.settings_of(member),
            worker: process.host.worker.clone(),
            groups: self.own.groups.own(&self.profile.plan_of(member).serves),
            dynamic: self.profile.is_dynamic(),
            description: process.host.description,
            seed: self.dice.number(),
            hooks_wait: false,
        };
        let mut machine = match self.profile.defect {
            Some(defect) => Member::planted(setup, now, defect),
            None => Member::new(setup, now),
        };
        machine.share(Arc::clone(&self.own.hashes));
        self.processes[member].machine = Some(Box::new(machine));
        if self.profile.faults.is_empty() {
            // Members of a sound world reach the store before they begin.
            self.processes[member].connected = Some(self.reach.life);
            let incarnation = self.reach.incarnation();
            self.hand(member, Event::Connected(incarnation))?;
        } else {
            let connects = self.way();
            self.reconnect(member, connects);
        }
        self.hand(member, Event::Start)
    }

    /// A process ends, whatever it was doing.
    pub(super) fn end(&mut self, member: usize, in_order: bool) -> Result<(), Broken> {
        if !self.processes[member].is_alive() {
            return Ok(());
        }
        self.note(|| format!("m{member} ends{}", if in_order { " in order" } else { "" }));
        self.processes[member].clear();
        self.tell(&Fact::Gone { member, in_order })
    }

    pub(super) fn leave_if_over(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(over) = process.over.take() else {
            return Ok(());
        };
        let back = process.comes_back.take();
        let (back, in_order) = match &over {
            Over::Ended(Ending::InOrder) => (back, true),
            Over::Ended(Ending::Late) => {
                self.count(Mishap::EndedLate);
                (back, false)
            }
            Over::Ended(Ending::NameTaken) => {
                self.name_taken(member)?;
                // What does not stop in time is not waited for. Whatever
                // started it tries again, and has to know nothing.
                let stopped = self.processes[member].running.is_empty();
                (Some(self.profile.settings.lease_ttl / 2), stopped)
            }
            Over::Ended(Ending::Unfit(why)) => {
                unreachable!("this store is never unfit, and told so: {why}")
            }
            Over::Aborted => {
                self.count(Mishap::Abort);
                (Some(RESTART_AFTER), false)
            }
        };
        self.end(member, in_order)?;
        match back {
            Some(back) if !self.processes[member].is_namesake => {
                self.after(back, Happening::Boot(member));
            }
            _ => {}
        }
        Ok(())
    }

    /// A process says that another has its name: has it?
    fn name_taken(&mut self, member: usize) -> Result<(), Broken> {
        self.count(Mishap::NameTaken);
        let process = &self.processes[member];
        let own = (member, process.generation);
        let booted = process.host.booted;
        let others = self
            .own
            .named
            .get(&process.host.worker)
            .into_iter()
            .flatten();
        let mut others = others.filter(|(who, at)| **who != own && **at >= booted);
        let rightly = others.next().is_some() || self.now < self.own.names_linger;
        self.tell(&Fact::NameTaken { member, rightly })
    }
}
