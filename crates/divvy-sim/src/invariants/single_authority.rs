//! I1: at most one authority per partition at every instant.
//!
//! A partition runs at a member from the call of its start hook until its stop
//! hook has returned, and its effects count until the member's deadline, or its
//! own where it has one. Both together is authority, and no instant may have
//! two. Where commands do the work, no instant may have two that work, whatever
//! their agents believe: a command works until it was ended.

use std::collections::BTreeSet;

use divvy_core::leader::{Life, WorkerRecord};

use super::excuse::Excuse;
use super::witnesses::Witnesses;
use super::{Bounds, Invariant};
use crate::fact::{Disturbed, Fact, Seen};
use crate::ledger::Ledger;
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
    excuse: Excuse,
    witnesses: Witnesses,
    /// By member, whether another live worker's record said that the store
    /// forgot when its own was first written since it last knew of that.
    renewed: Vec<Option<bool>>,
    /// Members whose lease had ended and that took up their work again although
    /// it said so: they could know, and are not excused.
    warned: Vec<bool>,
    /// Reads may show what was there before: then nobody has to know.
    is_stale: bool,
    /// What was asked to stop, by member and partition: how long that takes is up
    /// to its hook.
    asked: BTreeSet<(usize, usize)>,
    /// What of it was while that was excused.
    leaving: BTreeSet<(usize, usize)>,
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
            excuse: Excuse::of_rollback(bounds),
            witnesses: Witnesses::new(bounds),
            renewed: vec![None; bounds.members_max],
            warned: vec![false; bounds.members_max],
            is_stale: bounds.is_stale,
            asked: BTreeSet::new(),
            leaving: BTreeSet::new(),
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
        self.asked.remove(&(member, partition));
        self.leaving.remove(&(member, partition));
        self.runs[partition].retain(|run| run.member != member);
        self.held[member].retain(|&other| other != partition);
    }

    /// Whatever runs there has no authority any more.
    fn release(&mut self, member: usize) {
        self.until[member] = TrueTime::ZERO;
        self.renewed[member] = None;
        self.warned[member] = false;
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
        if runs.len() < 2 || !self.is_promised {
            return Ok(());
        }
        let own = runs.iter().find(|run| run.member == member);
        let own = own.map_or(TrueTime::ZERO, |run| self.until(run));
        let ends = |run: &&Run| {
            let both = own.min(self.until(run));
            let is_warned = self.warned[member] || self.warned[run.member];
            let is_excused = self.excuse.covers(at) && !is_warned;
            run.member != member && !is_excused && both > at && both > self.disturbed[partition]
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
        let is_excused = |other: usize| {
            let is_warned = self.warned[member] || self.warned[other];
            let is_early = self.excuse.covers(at) && !is_warned;
            is_early || at < self.disturbed[partition]
        };
        let is_rival =
            |&&other: &&usize| other != member && !self.asleep[other] && !is_excused(other);
        match self.working[partition].iter().find(is_rival) {
            Some(other) if self.is_promised && !self.asleep[member] => Err(format!(
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
                identity,
                until: Some(until),
                ..
            } => {
                self.prolonged(seen, member, identity.map(|(id, _)| id));
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

    /// A worker's record was written, perhaps by itself.
    fn written(&mut self, by: usize, id: &str, (ledger, record): (&Ledger, &WorkerRecord)) {
        let before = ledger.workers.get(id).map(|known| &known.value);
        let is_renewal = before.is_some_and(|before| before.session == record.session);
        if is_renewal && record.life == Life::Live && !self.is_stale {
            self.renewed[by].get_or_insert_with(|| is_alarmed(ledger, id));
        }
    }

    /// A member knows of a renewal. A lease that had ended is not taken up again
    /// before a listing that was asked for after it.
    fn prolonged(&mut self, seen: &Seen<'_>, member: usize, id: Option<&str>) {
        let had_ended = self.until[member] <= seen.at;
        let was_alarmed = self.renewed[member].take() == Some(true);
        if had_ended {
            let is_alarmed = id.is_some_and(|id| is_alarmed(seen.ledger, id));
            self.warned[member] = was_alarmed && is_alarmed;
        }
    }

    /// Whether what a member does to a resource may come too late.
    fn is_excused(&self, at: TrueTime, member: usize, partition: usize) -> bool {
        let is_early = self.excuse.covers(at) && !self.warned[member];
        is_early || at < self.disturbed[partition] || self.leaving.contains(&(member, partition))
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

/// Whether a live worker other than this one says that the store forgot, and
/// no quarantine has answered that.
fn is_alarmed(ledger: &Ledger, id: &str) -> bool {
    let answered = ledger
        .root
        .as_ref()
        .map_or(0, |root| root.value.root.answered);
    ledger.workers.iter().any(|(other, known)| {
        let record = &known.value;
        let says = record.alarm > 0 && record.alarm >= answered;
        says && record.life == Life::Live && **other != *id
    })
}

impl Invariant for SingleAuthority {
    const NUMBER: &'static str = "I1";
    const PROPERTY: &'static str = "at most one authority per partition at every instant";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        self.excuse.observe(seen);
        self.witnesses.observe(seen);
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
            Fact::EndAsked { member, partition } => {
                self.asked.insert((member, partition));
                if self.excuse.covers(seen.at) && !self.warned[member] {
                    self.leaving.insert((member, partition));
                }
                Ok(())
            }
            Fact::WorkerWritten {
                by,
                id,
                record,
                orphaned: false,
                ..
            } => {
                self.written(by, id, (seen.ledger, record));
                Ok(())
            }
            Fact::Deadline { .. } | Fact::TenureDeadline { .. } => self.observe_deadline(seen),
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
                self.renewed.fill(None);
                self.warned.fill(false);
                self.leaving.extend(&self.asked);
                Ok(())
            }
            Fact::EffectRefused {
                member,
                partition,
                token,
                seen: higher,
            } if self.is_promised
                && !self.is_excused(seen.at, member, partition)
                && !self.witnesses.cannot_tell(seen.at, higher) =>
            {
                Err(format!(
                    "the effect of partition {partition} at m{member} with token {token} was \
                     refused inside its deadline: {higher} was there before"
                ))
            }
            _ => Ok(()),
        }
    }
}
