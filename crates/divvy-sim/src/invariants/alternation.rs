//! I12: start and stop hooks of a partition strictly alternate and never
//! overlap, whoever says that it has left runs none, and none runs of what is
//! given back.

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
    ends_late: bool,
}

impl Alternation {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            members: vec![BTreeMap::new(); bounds.members_max],
            ends_late: bounds.ends_late,
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
    const PROPERTY: &'static str = "hooks of a partition strictly alternate and never overlap, and are over when leaving is said or a lease given back";

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
            Fact::GivenBack { member, partition } => {
                let last = self.members[member].get(&partition);
                match last.is_none_or(|last| *last == Last::Stopped) {
                    true => Ok(()),
                    false => Err(format!(
                        "m{member} gives the lease of partition {partition} back at {:?}",
                        last.expect("it is at something")
                    )),
                }
            }
            Fact::Gone { member, in_order } => {
                let hooks = std::mem::take(&mut self.members[member]);
                match hooks.iter().find(|(_, last)| **last != Last::Stopped) {
                    Some((partition, last)) if in_order && !self.ends_late => Err(format!(
                        "m{member} ended, and partition {partition} is at {last:?}"
                    )),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
