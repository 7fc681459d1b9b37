//! I1: at most one authority per partition at every instant.
//!
//! A partition runs at a member from the call of its start hook until its stop
//! hook has returned, and its effects count until the member's deadline, or its
//! own where it has one. Both together is authority, and no instant may have
//! two. Where commands do the work, no instant may have two that work, whatever
//! their agents believe: a command works until it was ended.

use super::{Bounds, Invariant};
use crate::fact::{Disturbed, Fact, Seen};
use crate::time::TrueTime;

/// A partition that runs.
#[derive(Debug, Clone, Copy)]
struct Run {
    member: usize,
    /// Until when its effects count, if that is not the member's deadline.
    until: Option<TrueTime>,
}

#[derive(Debug, Clone)]
pub(super) struct SingleAuthority {
    /// Where each partition runs.
    runs: Vec<Vec<Run>>,
    /// What runs at each member.
    held: Vec<Vec<usize>>,
    /// Until when each member's effects count.
    until: Vec<TrueTime>,
    /// Where commands work on each partition.
    working: Vec<Vec<usize>>,
    /// Members whose machine sleeps, and their commands with it.
    asleep: Vec<bool>,
    /// A store that forgets and does not say so is outside of what is
    /// promised; what it breaks is over after this. Only time in which the store
    /// answers counts: nobody can find out before.
    excused: TrueTime,
    /// Until when the store answers nobody.
    unanswered: TrueTime,
    excuse: std::time::Duration,
    /// Until when each partition may run twice, because something was done to
    /// its lease that no lease protects from.
    disturbed: Vec<TrueTime>,
    /// Nothing of it is promised where work may outlast its lease.
    is_promised: bool,
}

impl SingleAuthority {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            runs: vec![Vec::new(); bounds.partitions_max],
            held: vec![Vec::new(); bounds.members_max],
            until: vec![TrueTime::ZERO; bounds.members_max],
            working: vec![Vec::new(); bounds.partitions_max],
            asleep: vec![false; bounds.members_max],
            excused: TrueTime::ZERO,
            unanswered: TrueTime::ZERO,
            excuse: bounds.lease * 2,
            disturbed: vec![TrueTime::ZERO; bounds.partitions_max],
            is_promised: bounds.is_exclusive,
        }
    }

    fn begin(&mut self, at: TrueTime, member: usize, partition: usize) -> Result<(), String> {
        let run = Run {
            member,
            until: None,
        };
        self.runs[partition].push(run);
        self.held[member].push(partition);
        self.alone(at, member, partition)
    }

    fn end(&mut self, member: usize, partition: usize) {
        self.runs[partition].retain(|run| run.member != member);
        self.held[member].retain(|&other| other != partition);
    }

    /// Whatever runs there has no authority any more.
    fn release(&mut self, member: usize) {
        self.until[member] = TrueTime::ZERO;
        for partition in std::mem::take(&mut self.held[member]) {
            self.end(member, partition);
        }
    }

    /// A partition has a deadline of its own.
    fn set(
        &mut self,
        at: TrueTime,
        (member, partition): (usize, usize),
        until: TrueTime,
    ) -> Result<(), String> {
        let mut runs = self.runs[partition].iter_mut();
        if let Some(run) = runs.find(|run| run.member == member) {
            run.until = Some(until);
        }
        self.alone(at, member, partition)
    }

    fn until(&self, run: &Run) -> TrueTime {
        run.until.unwrap_or(self.until[run.member])
    }

    fn alone(&self, at: TrueTime, member: usize, partition: usize) -> Result<(), String> {
        let runs = &self.runs[partition];
        if runs.len() < 2 || !self.is_promised || at < self.excused {
            return Ok(());
        }
        let own = runs.iter().find(|run| run.member == member);
        let own = own.map_or(TrueTime::ZERO, |run| self.until(run));
        let ends = |run: &&Run| {
            let both = own.min(self.until(run));
            run.member != member && both > at && both > self.disturbed[partition]
        };
        match runs.iter().find(ends) {
            None => Ok(()),
            Some(run) => Err(format!(
                "partition {partition} runs at m{member} until {own} and at m{} until {}",
                run.member,
                self.until(run)
            )),
        }
    }

    /// Whether the command of a member is the only one that works.
    fn works_alone(&self, at: TrueTime, member: usize, partition: usize) -> Result<(), String> {
        let is_excused = at < self.excused.max(self.disturbed[partition]);
        let is_awake = |&&other: &&usize| !self.asleep[other];
        let mut awake = self.working[partition].iter().filter(is_awake);
        let other = awake.find(|&&other| other != member);
        match other {
            Some(other) if self.is_promised && !is_excused && !self.asleep[member] => Err(format!(
                "commands work on partition {partition} at m{member} and at m{other}"
            )),
            _ => Ok(()),
        }
    }

    fn observe_deadline(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
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
            Fact::TenureDeadline {
                member,
                partition,
                until: Some(until),
                ..
            } => self.set(seen.at, (member, partition), until),
            Fact::TenureDeadline {
                member,
                partition,
                until: None,
                ..
            } => {
                self.end(member, partition);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether commands work alone.
    fn observe_work(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::WorkBegins { member, partition } => {
                self.working[partition].push(member);
                self.works_alone(seen.at, member, partition)
            }
            Fact::WorkEnds { member, partition } => {
                // What was excused when it began may not be any more.
                self.works_alone(seen.at, member, partition)?;
                self.end_work(member, partition);
                Ok(())
            }
            Fact::Asleep { member, asleep } => self.sleep(seen.at, member, asleep),
            _ => Ok(()),
        }
    }

    fn unanswered_until(&mut self, at: TrueTime, until: TrueTime) {
        let more = until.since(at.max(self.unanswered));
        self.unanswered = self.unanswered.max(until);
        if at < self.excused {
            self.excused = self.excused + more;
        }
    }

    fn end_work(&mut self, member: usize, partition: usize) {
        self.working[partition].retain(|&other| other != member);
    }

    fn sleep(&mut self, at: TrueTime, member: usize, asleep: bool) -> Result<(), String> {
        self.asleep[member] = asleep;
        let mut partitions = 0..self.working.len();
        partitions.try_for_each(|partition| {
            if !self.working[partition].contains(&member) {
                return Ok(());
            }
            self.works_alone(at, member, partition)
        })
    }

    fn disturb(&mut self, whose: Disturbed, until: TrueTime) {
        let several = match whose {
            Disturbed::Leases => &mut self.disturbed[..],
            Disturbed::Lease(partition) => &mut self.disturbed[partition..=partition],
            Disturbed::Sessions => return,
        };
        for disturbed in several {
            *disturbed = until.max(*disturbed);
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
            Fact::Deadline { .. } | Fact::TenureDeadline { .. } => self.observe_deadline(seen),
            Fact::Unanswered { until } => {
                self.unanswered_until(seen.at, until);
                Ok(())
            }
            Fact::WorkBegins { .. } | Fact::WorkEnds { .. } | Fact::Asleep { .. } => {
                self.observe_work(seen)
            }
            Fact::Gone { member, .. } => {
                self.release(member);
                self.asleep[member] = false;
                (0..self.working.len()).for_each(|partition| self.end_work(member, partition));
                Ok(())
            }
            Fact::Disturbed { whose, until } => {
                self.disturb(whose, until);
                Ok(())
            }
            Fact::Forgot { announced: false } => {
                self.excused = seen.at.max(self.unanswered) + self.excuse;
                Ok(())
            }
            Fact::EffectRefused {
                member,
                partition,
                token,
                seen: higher,
            } if self.is_promised && seen.at >= self.excused.max(self.disturbed[partition]) => {
                Err(format!(
                    "the effect of partition {partition} at m{member} with token {token} was refused \
                 inside its deadline: {higher} was there before"
                ))
            }
            _ => Ok(()),
        }
    }
}
