//! I1: at most one authority per partition at every instant.
//!
//! A partition runs at a member from the call of its start hook until its stop
//! hook has returned, and its effects count until the member's deadline. Both
//! together is authority, and no instant may have two.

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};
use crate::time::TrueTime;

#[derive(Debug, Clone)]
pub(super) struct SingleAuthority {
    /// Where each partition runs.
    runs: Vec<Vec<usize>>,
    /// What runs at each member.
    held: Vec<Vec<usize>>,
    /// Until when each member's effects count.
    until: Vec<TrueTime>,
    /// A store that forgets and does not say so is outside of what is
    /// promised; what it breaks is over after this.
    excused: TrueTime,
    excuse: std::time::Duration,
    /// Nothing of it is promised where work may outlast its lease.
    is_promised: bool,
}

impl SingleAuthority {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            runs: vec![Vec::new(); bounds.partitions_max],
            held: vec![Vec::new(); bounds.members_max],
            until: vec![TrueTime::ZERO; bounds.members_max],
            excused: TrueTime::ZERO,
            excuse: bounds.lease * 2,
            is_promised: bounds.is_exclusive,
        }
    }

    fn begin(&mut self, at: TrueTime, member: usize, partition: usize) -> Result<(), String> {
        self.runs[partition].push(member);
        self.held[member].push(partition);
        self.alone(at, member, partition)
    }

    fn end(&mut self, member: usize, partition: usize) {
        self.runs[partition].retain(|&other| other != member);
        self.held[member].retain(|&other| other != partition);
    }

    /// Whatever runs there has no authority any more.
    fn release(&mut self, member: usize) {
        self.until[member] = TrueTime::ZERO;
        for partition in std::mem::take(&mut self.held[member]) {
            self.end(member, partition);
        }
    }

    fn alone(&self, at: TrueTime, member: usize, partition: usize) -> Result<(), String> {
        let is_excused = !self.is_promised || at < self.excused;
        if self.runs[partition].len() < 2 || self.until[member] <= at || is_excused {
            return Ok(());
        }
        let others = self.runs[partition].iter();
        let other = others
            .copied()
            .find(|&other| other != member && self.until[other] > at);
        match other {
            None => Ok(()),
            Some(other) => Err(format!(
                "partition {partition} runs at m{member} until {} and at m{other} until {}",
                self.until[member], self.until[other]
            )),
        }
    }
}

impl Invariant for SingleAuthority {
    const NUMBER: &'static str = "I1";
    const PROPERTY: &'static str = "at most one authority per partition at every instant";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::StartCalled {
                member, partition, ..
            } => self.begin(seen.at, member, partition),
            Fact::StartEnded {
                member,
                partition,
                failed: true,
            }
            | Fact::StopEnded { member, partition } => {
                self.end(member, partition);
                Ok(())
            }
            Fact::Deadline {
                member,
                until: None,
                ..
            } => {
                self.release(member);
                Ok(())
            }
            Fact::Deadline {
                member,
                until: Some(until),
                ..
            } => {
                self.until[member] = until;
                let mut held = self.held[member].iter();
                held.try_for_each(|&partition| self.alone(seen.at, member, partition))
            }
            Fact::Gone { member, .. } => {
                self.release(member);
                Ok(())
            }
            Fact::Forgot { announced: false } => {
                self.excused = seen.at + self.excuse;
                Ok(())
            }
            Fact::EffectRefused {
                member,
                partition,
                token,
                seen: higher,
            } if self.is_promised && seen.at >= self.excused => Err(format!(
                "the effect of partition {partition} at m{member} with token {token} was refused \
                 inside its deadline: {higher} was there before"
            )),
            _ => Ok(()),
        }
    }
}
