//! P6: what one worker cannot start runs with another in time.

use std::collections::BTreeSet;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};
use crate::time::TrueTime;

#[derive(Debug, Clone)]
pub(super) struct TakenOver {
    /// What a lost worker ran and nobody has started with success since.
    awaited: BTreeSet<usize>,
    by: TrueTime,
}

impl TakenOver {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self {
            awaited: BTreeSet::new(),
            by: TrueTime::ZERO,
        }
    }
}

impl Invariant for TakenOver {
    const NUMBER: &'static str = "P6";
    const PROPERTY: &'static str = "what one worker cannot start runs with another in time";
    const HEARS_STEPS: bool = true;

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Limping { partitions, by } => {
                self.awaited = partitions.iter().copied().collect();
                self.by = by;
                Ok(())
            }
            Fact::StartEnded {
                partition,
                failed: false,
                ..
            } => {
                self.awaited.remove(&partition);
                Ok(())
            }
            Fact::Stepped { .. } if !self.awaited.is_empty() && seen.at > self.by => Err(format!(
                "{} partitions were not started by anybody who can by {}, partition {} among them",
                self.awaited.len(),
                self.by,
                self.awaited.first().expect("it is not empty")
            )),
            _ => Ok(()),
        }
    }
}
