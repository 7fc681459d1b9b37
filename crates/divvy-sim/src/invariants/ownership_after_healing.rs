//! P1: after faults heal, with one healthy worker, everything is owned in time.
//!
//! After its faults a world gets as much time as the protocol may take, with
//! open windows and reservations, and what really runs is looked at. Then it
//! loses a worker, and what that ran must have started elsewhere within
//! LL + W + 2 polls + 1 s, whatever window is open.

use std::collections::BTreeSet;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen, Survey};
use crate::time::TrueTime;

#[derive(Debug, Clone)]
pub(super) struct OwnershipAfterHealing {
    /// What a lost worker ran and nobody has started since.
    awaited: BTreeSet<usize>,
    by: TrueTime,
}

impl OwnershipAfterHealing {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self {
            awaited: BTreeSet::new(),
            by: TrueTime::ZERO,
        }
    }
}

fn everything_runs(survey: &Survey) -> Result<(), String> {
    if !survey.eligible {
        return Ok(());
    }
    let idle = survey.running.iter().filter(|(_, at)| at.is_empty());
    let idle: Vec<usize> = idle.map(|(partition, _)| *partition).collect();
    if let Some(first) = idle.first() {
        let all = survey.running.len();
        return Err(format!(
            "{} of {all} partitions run nowhere, partition {first} among them",
            idle.len()
        ));
    }
    match survey.unwanted.first() {
        Some(partition) => Err(format!(
            "partition {partition} runs, and the source dropped it"
        )),
        None => Ok(()),
    }
}

impl Invariant for OwnershipAfterHealing {
    const NUMBER: &'static str = "P1";
    const PROPERTY: &'static str =
        "after faults heal, with one healthy worker: everything owned in time";
    const HEARS_STEPS: bool = true;

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Surveyed(survey) => everything_runs(survey),
            Fact::Lost { partitions, by } => {
                self.awaited = partitions.iter().copied().collect();
                self.by = by;
                Ok(())
            }
            Fact::StartCalled { partition, .. } if !self.awaited.is_empty() => {
                self.awaited.remove(&partition);
                Ok(())
            }
            Fact::Stepped { .. } if !self.awaited.is_empty() && seen.at > self.by => Err(format!(
                "a worker was lost, and {} of its partitions run nowhere by {}, partition {} among them",
                self.awaited.len(),
                self.by,
                self.awaited.first().expect("it is not empty")
            )),
            _ => Ok(()),
        }
    }
}
