//! I5: no effect at or after the deadline; every started partition gets its
//! stop hook.
//!
//! Effects look at the deadline that the machine gave, so what must hold is
//! that this deadline was earned: it lies a margin before the end of a lease
//! that counts from when an applied renewal was sent. Where partitions have
//! deadlines of their own, each is earned by its own lease, as it would end if
//! the store's clock ran as fast as one may and the holder's as slowly.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::Moment;

use super::{Bounds, Invariant};
use crate::clock::RATE_ERROR_MAX_PPM;
use crate::fact::{Fact, Seen};

/// What a partition has of its own, where it does.
#[derive(Debug, Clone, Copy, Default)]
struct Tenure {
    /// Until when its lease lets it work.
    earned: Option<Moment>,
    /// Until when it says that it works; nothing inside if no longer.
    deadline: Option<Option<Moment>>,
}

#[derive(Debug, Clone, Default)]
struct Holder {
    /// Until when the last applied renewal lets it work.
    earned: Option<Moment>,
    deadline: Option<Moment>,
    /// Partitions that were started and not yet asked to stop.
    unstopped: Vec<usize>,
    /// By partition: few members have many, and there may be very many.
    tenures: BTreeMap<usize, Tenure>,
}

impl Holder {
    fn deadline_of(&self, partition: usize) -> Option<Moment> {
        let own = self.tenures.get(&partition);
        own.and_then(|tenure| tenure.deadline)
            .unwrap_or(self.deadline)
    }

    fn tenure(&mut self, partition: usize) -> &mut Tenure {
        self.tenures.entry(partition).or_default()
    }

    fn keep(&mut self, partition: usize, sent: Moment, ttl: Duration) {
        let end = sent + usable(ttl);
        let earned = &mut self.tenure(partition).earned;
        *earned = Some(earned.map_or(end, |earned| earned.max(end)));
    }

    /// Gives what was earned, if the deadline is beyond that.
    fn set(&mut self, partition: usize, until: Option<Moment>) -> Option<Moment> {
        let tenure = self.tenure(partition);
        tenure.deadline = Some(until);
        let earned = tenure.earned.unwrap_or_default();
        until.filter(|until| *until > earned).map(|_| earned)
    }
}

/// How long after it was asked for a lease may be worked under: by the slowest
/// clock against the fastest, less a margin.
fn usable(ttl: Duration) -> Duration {
    let nanos = ttl.as_nanos() * (1_000_000 - RATE_ERROR_MAX_PPM as u128)
        / (1_000_000 + RATE_ERROR_MAX_PPM as u128);
    Duration::from_nanos(nanos as u64) - ttl / 20
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

impl Deadlines {
    /// A member says until when all that it has is current.
    fn told(&mut self, member: usize, until: Option<Moment>) -> Result<(), String> {
        let holder = &mut self.members[member];
        holder.deadline = until;
        let Some(until) = until else {
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

    /// A member has done what it had to: nothing runs past its deadline.
    fn stepped(&self, member: usize, now: Moment) -> Result<(), String> {
        let holder = &self.members[member];
        let overdue = holder.unstopped.iter().find(|&&partition| {
            let until = holder.deadline_of(partition);
            until.is_none_or(|until| until <= now)
        });
        match overdue {
            None => Ok(()),
            Some(&partition) => Err(format!(
                "m{member} lets partition {partition} run although its deadline is {:?} \
                 and it is {now:?}",
                holder.deadline_of(partition)
            )),
        }
    }
}

impl Invariant for Deadlines {
    const NUMBER: &'static str = "I5";
    const PROPERTY: &'static str =
        "no effect at or after the deadline; every started partition gets its stop hook";
    const HEARS_STEPS: bool = true;

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
            } => self.told(member, until_local),
            Fact::LeaseKept {
                member,
                partition,
                sent,
                ttl,
            } => {
                self.members[member].keep(partition, sent, ttl);
                Ok(())
            }
            Fact::TenureDeadline {
                member,
                partition,
                until_local,
                ..
            } => match self.members[member].set(partition, until_local) {
                None => Ok(()),
                Some(earned) => Err(format!(
                    "m{member} works on partition {partition} until {until_local:?} and its \
                     lease gives it {earned:?}"
                )),
            },
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
            Fact::Stepped { member, now } => self.stepped(member, now),
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
