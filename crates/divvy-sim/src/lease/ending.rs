//! How members end otherwise than in order.

use std::time::Duration;

use divvy_core::lease::Ending;

use super::LeaseWorld;
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;

impl LeaseWorld {
    /// A member ended otherwise than in order. Gives after which time it comes
    /// back, if it does, and whether it had nothing left to stop.
    pub(super) fn ended(
        &mut self,
        member: usize,
        ending: &Ending,
        back: Option<Duration>,
    ) -> Result<(Option<Duration>, bool), Broken> {
        match ending {
            Ending::InOrder => Ok((back, true)),
            Ending::Late => {
                self.count(Mishap::EndedLate);
                Ok((back, false))
            }
            Ending::NameTaken => {
                self.name_taken(member)?;
                // What does not stop in time is not waited for. Whatever
                // started it tries again, and has to know nothing.
                let stopped = self.processes[member].running.is_empty();
                Ok((Some(self.profile.settings.lease_ttl / 2), stopped))
            }
            Ending::Unfit(why) => {
                unreachable!("this store is never unfit, and told so: {why}")
            }
        }
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
