//! The coming and going of processes.

use std::time::Duration;

use divvy_core::lease::Ending;

use super::coordination::Coordination;
use super::machine::Occasion;
use super::process::Over;
use super::{Happening, WorldOf};
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;

/// How long a process whose member ended by policy stays away.
const RESTART_AFTER: Duration = Duration::from_millis(200);

impl<C: Coordination> WorldOf<C> {
    /// A process is started, unless there is one.
    pub(crate) fn boot(&mut self, member: usize) -> Result<(), Broken> {
        if self.processes[member].is_alive() {
            return Ok(());
        }
        self.note(|| format!("m{member} starts"));
        self.clear(member);
        let machine = C::machine(self, member);
        self.processes[member].machine = Some(Box::new(machine));
        if self.frame().connects_at_once {
            self.connected(member)?;
        } else {
            let connects = self.way();
            self.reconnect(member, connects);
        }
        self.hand_of(member, Occasion::Start)
    }

    /// A process ends, whatever it was doing.
    pub(crate) fn end(&mut self, member: usize, in_order: bool) -> Result<(), Broken> {
        if !self.processes[member].is_alive() {
            return Ok(());
        }
        self.note(|| format!("m{member} ends{}", if in_order { " in order" } else { "" }));
        self.clear(member);
        self.tell(&Fact::Gone { member, in_order })
    }

    /// Forgets all that a process had; what stays is the host.
    fn clear(&mut self, member: usize) {
        self.processes[member].clear();
        C::forget(self, member);
    }

    /// A process whose member has ended is gone, and comes back.
    pub(super) fn leave_if_over(&mut self, member: usize) -> Result<(), Broken> {
        let process = &mut self.processes[member];
        let Some(over) = process.over.take() else {
            return Ok(());
        };
        let back = process.comes_back.take();
        let (back, in_order) = match over {
            // Who has to end while hooks still wait for their turn ends as at
            // any other time.
            Over::Ended(Ending::InOrder) => (back, process.waiting.is_empty()),
            Over::Ended(ending) => C::ended(self, member, &ending, back)?,
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
}
