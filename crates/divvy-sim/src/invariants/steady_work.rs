//! P2 of leases: stable membership and weights, no starts and no stops.

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
            _ => Ok(()),
        }
    }
}
