//! I12: start and stop hooks of a partition strictly alternate and never
//! overlap, and whoever says that it has left runs none.

use std::collections::BTreeMap;

use divvy_core::leader::Life;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

/// What was last heard of the hooks of a partition at a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    StartCalled,
    StartReturned,
    StopCalled,
    Stopped,
}

#[derive(Debug, Clone)]
pub(super) struct Alternation {
    members: Vec<BTreeMap<usize, Last>>,
}

impl Alternation {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            members: vec![BTreeMap::new(); bounds.members_max],
        }
    }

    fn step(
        &mut self,
        member: usize,
        partition: usize,
        from: Last,
        to: Last,
    ) -> Result<(), String> {
        let last = self.members[member].insert(partition, to);
        let last = last.unwrap_or(Last::Stopped);
        match last == from {
            true => Ok(()),
            false => Err(format!(
                "partition {partition} at m{member}: {to:?} after {last:?}"
            )),
        }
    }
}

impl Invariant for Alternation {
    const NUMBER: &'static str = "I12";
    const PROPERTY: &'static str = "hooks of a partition strictly alternate and never overlap, and are over when leaving is said";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::StartCalled {
                member, partition, ..
            } => self.step(member, partition, Last::Stopped, Last::StartCalled),
            Fact::StartEnded {
                member,
                partition,
                failed,
            } => {
                let to = match failed {
                    true => Last::Stopped,
                    false => Last::StartReturned,
                };
                self.step(member, partition, Last::StartCalled, to)
            }
            Fact::StopCalled { member, partition } => {
                self.step(member, partition, Last::StartReturned, Last::StopCalled)
            }
            Fact::StopEnded { member, partition } => {
                self.step(member, partition, Last::StopCalled, Last::Stopped)
            }
            Fact::WorkerWritten {
                by,
                orphaned: false,
                id,
                record,
                ..
            } if matches!(record.life, Life::Left { .. }) => {
                let mut hooks = self.members[by].iter();
                match hooks.find(|(_, last)| **last != Last::Stopped) {
                    None => Ok(()),
                    Some((partition, last)) => Err(format!(
                        "m{by} says that {id} has left, and partition {partition} is at {last:?}"
                    )),
                }
            }
            Fact::Gone { member, .. } => {
                self.members[member].clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
