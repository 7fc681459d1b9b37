//! P2 of leases: stable membership and weights, no starts and no stops. At any
//! time, what is given up should be with another worker or is beyond a limit, and a member that could
//! not reach the store for less than a lease and a renewal stops nothing.

use super::{Bounds, Invariant};
use crate::fact::{Fact, Phase, Seen};

#[derive(Debug, Clone)]
pub(super) struct SteadyWork {
    quiet: bool,
}

impl SteadyWork {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self { quiet: false }
    }
}

impl Invariant for SteadyWork {
    const NUMBER: &'static str = "P2";
    const PROPERTY: &'static str = "stable membership and weights: no moves at all";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Entered(phase) => {
                self.quiet = phase == Phase::Quiet;
                Ok(())
            }
            Fact::StartCalled { member, name, .. } if self.quiet => {
                Err(format!("m{member} starts {name}"))
            }
            Fact::StopCalled { member, partition } if self.quiet => {
                Err(format!("m{member} stops partition {partition}"))
            }
            Fact::Shed {
                member,
                has_reason: false,
                ..
            } => Err(format!(
                "m{member} gives up a partition within its limits that no other worker should have"
            )),
            Fact::Shed {
                member,
                has_run: false,
                ..
            } => Err(format!(
                "m{member} gives up a partition that has not run for as long as it has to"
            )),
            Fact::Unrenewed {
                member,
                partition,
                hindered,
                bears,
            } if hindered < bears => Err(format!(
                "m{member} stops partition {partition} because it could not be renewed for \
                 {hindered:?}, and has to bear that for {bears:?}"
            )),
            _ => Ok(()),
        }
    }
}
