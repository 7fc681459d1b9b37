//! What faults do to processes and their links.

use std::time::Duration;

use super::coordination::{Coordination, EventOf};
use super::machine::{Machine, Occasion};
use super::process::{Arrival, Stillness};
use super::{Happening, WorldOf};
use crate::coverage::Mishap;
use crate::fact::{Fact, Phase};
use crate::fault::Isolation;
use crate::invariants::Broken;

impl<C: Coordination> WorldOf<C> {
    /// A fault that lasts begins.
    pub(crate) fn last(&mut self, index: usize, lasts: Duration) -> Result<(), Broken> {
        self.active.push(index);
        self.after(lasts, Happening::Relent(index));
        C::settle_faults(self)
    }

    /// A fault ends.
    pub(super) fn relent(&mut self, index: usize) -> Result<(), Broken> {
        self.active.retain(|&active| active != index);
        C::settle_faults(self)
    }

    /// A member is cut off, or is not any more.
    pub(crate) fn isolate(&mut self, member: usize, way: Option<Isolation>) {
        if self.processes[member].isolation == way {
            return;
        }
        self.processes[member].isolation = way;
        self.hinder_while(Some(member), way.is_some());
        let Some(way) = way else {
            // Whatever was told may have been missed.
            self.processes[member].connected = None;
            let after = self.way();
            self.reconnect(member, after);
            return;
        };
        self.count(match way {
            Isolation::Full => Mishap::IsolationFull,
            Isolation::Outward => Mishap::IsolationOutward,
            Isolation::Inward => Mishap::IsolationInward,
            Isolation::Store => Mishap::IsolationStore,
        });
    }

    /// The member that believes to lead, if one does.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leads = |&member: &usize| {
            let machine = self.processes[member].machine.as_deref();
            machine.is_some_and(C::Machine::leads)
        };
        (0..self.processes.len()).find(leads)
    }

    /// A process ends without a word, and is started again.
    pub(crate) fn crash(&mut self, member: usize, back_after: Duration) -> Result<(), Broken> {
        if !self.processes[member].is_alive() {
            return Ok(());
        }
        self.count(Mishap::Crash);
        if self.leader() == Some(member) {
            self.count(Mishap::LeaderCrash);
        }
        self.end(member, false)?;
        if !self.processes[member].is_namesake {
            self.after(back_after, Happening::Boot(member));
        }
        Ok(())
    }

    /// The same to this part of all.
    pub(crate) fn crash_many(&mut self, part: f64, back_after: Duration) -> Result<(), Broken> {
        self.count(Mishap::MassRestart);
        let count = (self.processes.len() as f64 * part).ceil() as usize;
        for member in 0..count.min(self.processes.len()) {
            let spread = self.dice.span(Duration::ZERO, Duration::from_millis(100));
            self.crash(member, back_after + spread)?;
        }
        Ok(())
    }

    /// A process stands still, or its machine sleeps.
    pub(crate) fn stand_still(
        &mut self,
        member: usize,
        lasts: Duration,
        suspended: bool,
    ) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        if !process.is_alive() || process.stillness.is_some() {
            return Ok(());
        }
        process.stillness = Some(Stillness {
            until: self.now + lasts,
            suspended,
        });
        self.count(match suspended {
            true => Mishap::Suspend,
            false => Mishap::Pause,
        });
        self.after(lasts, Happening::Resume(member));
        self.hinder(Some(member), lasts);
        self.tell(&Fact::Unanswered {
            member: Some(member),
            until: self.now + lasts,
        })?;
        if !suspended {
            return Ok(());
        }
        self.tell(&Fact::Asleep {
            member,
            asleep: true,
        })
    }

    /// Asks a member to stop, and starts it again after it has.
    pub(crate) fn ask_to_stop(&mut self, member: usize, stop: EventOf<C>, back_after: Duration) {
        let process = &mut self.processes[member];
        if !process.is_alive() || process.stopping {
            return;
        }
        process.stopping = true;
        process.comes_back = Some(back_after);
        let happening = Happening::Arrive(member, process.generation, Arrival::Stop(stop));
        self.after(Duration::ZERO, happening);
    }

    /// Tells a member to look at everything.
    pub fn refresh(&mut self, member: usize) -> Result<(), Broken> {
        let refresh = C::Machine::event(Occasion::Refresh);
        self.arrive(member, Arrival::Event(refresh))
    }

    /// The store does nothing for a while.
    pub(crate) fn stall(&mut self, lasts: Duration) -> Result<(), Broken> {
        self.count(Mishap::StoreStall);
        self.hinder(None, lasts);
        self.reach.stalled_until = self.reach.stalled_until.max(self.now + lasts);
        let until = self.now + lasts;
        self.tell(&Fact::Unanswered {
            member: None,
            until,
        })
    }

    /// The store refuses whatever it is asked for a while.
    pub(crate) fn refuse(&mut self, lasts: Duration) -> Result<(), Broken> {
        self.count(Mishap::StoreUnavailable);
        self.hinder(None, lasts);
        self.reach.refuses_until = self.reach.refuses_until.max(self.now + lasts);
        let until = self.now + lasts;
        self.tell(&Fact::Unanswered {
            member: None,
            until,
        })
    }

    /// A member joins at a new place.
    pub fn add_member(&mut self) -> usize {
        self.count(Mishap::Join);
        let member = self.add_place();
        self.after(Duration::ZERO, Happening::Boot(member));
        member
    }

    /// All members are restarted, one after another.
    pub(crate) fn roll_all(&mut self) {
        self.count(Mishap::RollingRestart);
        self.roll(0);
    }

    /// The next member of a rolling restart leaves to come back.
    pub(super) fn roll(&mut self, member: usize) {
        if member >= self.processes.len() || self.phase != Phase::Faults {
            return;
        }
        let beat = self.frame().beat;
        let stop = C::stop_to_return(&self.profile);
        self.ask_to_stop(member, stop, beat / 2);
        self.after(beat * 3, Happening::Roll(member + 1));
    }
}
