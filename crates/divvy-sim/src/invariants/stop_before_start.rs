//! I1, and more where only hooks go wrong: nothing starts before it has stopped
//! elsewhere.
//!
//! Where the store cannot be reached, a deadline ends an authority whose stop
//! hook may still run. Where it can, there is no excuse: renewals go on while a
//! partition stops, however long that takes.

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct StopBeforeStart {
    is_calm: bool,
    /// Where each partition runs, or stops.
    runs: Vec<Vec<usize>>,
}

impl StopBeforeStart {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            is_calm: bounds.is_calm,
            runs: vec![Vec::new(); bounds.partitions_max],
        }
    }
}

impl Invariant for StopBeforeStart {
    const NUMBER: &'static str = "I1";
    const PROPERTY: &'static str =
        "where only hooks go wrong, nothing starts before it has stopped elsewhere";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        if !self.is_calm {
            return Ok(());
        }
        match *seen.fact {
            Fact::StartCalled {
                member, partition, ..
            } => {
                let runs = &mut self.runs[partition];
                runs.push(member);
                match runs[..] {
                    [first, _, ..] => Err(format!(
                        "partition {partition} starts at m{member} and runs or stops at m{first}"
                    )),
                    _ => Ok(()),
                }
            }
            Fact::StartEnded {
                member,
                partition,
                failed: true,
            }
            | Fact::StopEnded { member, partition } => {
                self.runs[partition].retain(|&other| other != member);
                Ok(())
            }
            Fact::Gone { member, .. } => {
                for runs in &mut self.runs {
                    runs.retain(|&other| other != member);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
