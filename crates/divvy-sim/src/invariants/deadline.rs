//! I5: no effect at or after the deadline; every started partition gets its
//! stop hook.
//!
//! Effects look at the deadline that the machine gave, so what must hold is
//! that this deadline was earned: it lies a margin before the end of a lease
//! that counts from when an applied renewal was sent.

use divvy_core::Moment;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone, Default)]
struct Holder {
    /// Until when the last applied renewal lets it work.
    earned: Option<Moment>,
    deadline: Option<Moment>,
    /// Partitions that were started and not yet asked to stop.
    unstopped: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Deadlines {
    members: Vec<Holder>,
    /// Where work may outlast its lease, no renewal gives it its deadline.
    is_earned: bool,
}

impl Deadlines {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            members: vec![Holder::default(); bounds.members_max],
            is_earned: bounds.is_exclusive,
        }
    }
}

impl Invariant for Deadlines {
    const NUMBER: &'static str = "I5";
    const PROPERTY: &'static str =
        "no effect at or after the deadline; every started partition gets its stop hook";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::WorkerWritten {
                by,
                orphaned: false,
                record,
                sent,
                ..
            } => {
                let holder = &mut self.members[by];
                // A margin before the lease's end, by whoever's lease it is.
                let end = sent + (record.lease - record.lease / 20);
                holder.earned = Some(holder.earned.map_or(end, |earned| earned.max(end)));
                Ok(())
            }
            Fact::Deadline {
                member,
                until_local,
                ..
            } => {
                let holder = &mut self.members[member];
                holder.deadline = until_local;
                let Some(until) = until_local else {
                    return Ok(());
                };
                let earned = holder.earned.unwrap_or_default();
                match !self.is_earned || until <= earned {
                    true => Ok(()),
                    false => Err(format!(
                        "m{member} works until {until:?} and its renewals give it {earned:?}"
                    )),
                }
            }
            // Hooks are serial: what still starts cannot be asked to stop.
            Fact::StartEnded {
                member,
                partition,
                failed: false,
            } => {
                self.members[member].unstopped.push(partition);
                Ok(())
            }
            Fact::StopCalled { member, partition } => {
                self.members[member].unstopped.retain(|&p| p != partition);
                Ok(())
            }
            Fact::Stepped { member, now } => {
                let holder = &self.members[member];
                if holder.unstopped.is_empty() || holder.deadline.is_some_and(|until| now < until) {
                    return Ok(());
                }
                Err(format!(
                    "m{member} lets partition {} run although its deadline is {:?} and it is {now:?}",
                    holder.unstopped[0], holder.deadline
                ))
            }
            Fact::Gone { member, in_order } => {
                let holder = std::mem::take(&mut self.members[member]);
                match holder.unstopped.first() {
                    Some(partition) if in_order => Err(format!(
                        "m{member} ended, and partition {partition} never got its stop hook"
                    )),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
