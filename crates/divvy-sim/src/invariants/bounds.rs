//! I11: every stored value fits; queues are bounded; nothing leaks.

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};
use crate::time::TrueTime;

/// Chunks that may lie in a quiet store: those of the root, and what was left
/// by leaders that died between two writes.
const CHUNKS_MAX: usize = 64;

/// Steps of one member within a second of the world: more, and it goes round in
/// circles or makes others do so.
const STEPS_MAX: u32 = 20_000;
/// The same for each partition, where there are so many that a member which has
/// them all takes more.
const STEPS_EACH: u32 = 8;

#[derive(Debug, Clone)]
pub(super) struct Bounded {
    value_bytes_max: usize,
    operations_max: usize,
    hooks_max: usize,
    /// Steps of each member in the present second.
    steps: Vec<u32>,
    steps_max: u32,
    second: u64,
}

impl Bounded {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            value_bytes_max: bounds.value_bytes_max,
            operations_max: bounds.operations_max,
            hooks_max: bounds.partitions_max,
            steps: vec![0; bounds.members_max],
            steps_max: STEPS_MAX.max(bounds.partitions_max as u32 * STEPS_EACH),
            second: 0,
        }
    }

    fn step(&mut self, at: TrueTime, member: usize) -> Result<(), String> {
        let second = at.nanos() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.steps.fill(0);
        }
        self.steps[member] += 1;
        let most = self.steps_max;
        match self.steps[member] > most {
            true => Err(format!("m{member} took {most} steps within a second")),
            false => Ok(()),
        }
    }
}

impl Invariant for Bounded {
    const NUMBER: &'static str = "I11";
    const PROPERTY: &'static str = "every stored value fits; queues are bounded; nothing leaks";
    const HEARS_STEPS: bool = true;

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let (what, count, most) = match *seen.fact {
            Fact::Stored { key, bytes } if bytes > self.value_bytes_max => {
                let most = self.value_bytes_max;
                return Err(format!("{key} has {bytes} bytes, at most {most} fit"));
            }
            Fact::Stepped { member, .. } => return self.step(seen.at, member),
            Fact::Busy { operations, .. } if operations > self.operations_max => {
                ("operations", operations, self.operations_max)
            }
            Fact::Busy { hooks, .. } if hooks > self.hooks_max => ("hooks", hooks, self.hooks_max),
            Fact::Surveyed(survey) if survey.chunks > CHUNKS_MAX => {
                ("chunks", survey.chunks, CHUNKS_MAX)
            }
            _ => return Ok(()),
        };
        Err(format!("{count} {what} at once, at most {most} are needed"))
    }
}
