//! I4 of hooks: what a session that ended still runs or stops is not handed on
//! before its hooks have returned, or before its lease is over for everybody.

use std::time::Duration;

use divvy_core::leader::{Life, SessionId};

use super::excuse::Excuse;
use super::grant_condition::slowest;
use super::{Bounds, Invariant};
use crate::fact::{Disturbed, Fact, Seen};
use crate::time::TrueTime;

/// The last write of a live record by the member whose it is.
#[derive(Debug, Clone, Copy)]
struct Renewal {
    session: SessionId,
    at: TrueTime,
    lease: Duration,
}

/// A partition from the call of its start hook until its stop hook has returned.
#[derive(Debug, Clone, Copy)]
struct Run {
    member: usize,
    renewal: Option<Renewal>,
}

#[derive(Debug, Clone)]
pub(super) struct HandedOn {
    runs: Vec<Vec<Run>>,
    renewals: Vec<Option<Renewal>>,
    excuse: Excuse,
    /// Until when a record that was deleted may let others in.
    disturbed: TrueTime,
    is_promised: bool,
}

impl HandedOn {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            runs: vec![Vec::new(); bounds.partitions_max],
            renewals: vec![None; bounds.members_max],
            excuse: Excuse::of_rollback(bounds),
            disturbed: TrueTime::ZERO,
            is_promised: bounds.is_exclusive,
        }
    }

    fn renewed(&mut self, member: usize, renewal: Renewal) {
        self.renewals[member] = Some(renewal);
        for run in self.runs.iter_mut().flatten() {
            let of = run.renewal.map(|known| known.session);
            if run.member == member && of == Some(renewal.session) {
                run.renewal = Some(renewal);
            }
        }
    }

    fn begin(&mut self, at: TrueTime, member: usize, partition: usize) -> Result<(), String> {
        let is_excused = self.excuse.covers(at) || at < self.disturbed || !self.is_promised;
        let renewal = self.renewals[member];
        let runs = &mut self.runs[partition];
        let is_early = |run: &&Run| {
            let lasts = |renewal: Renewal| at.since(renewal.at) < slowest(renewal.lease);
            run.member != member && run.renewal.is_some_and(lasts)
        };
        let early = runs.iter().find(is_early).map(|run| run.member);
        runs.push(Run { member, renewal });
        match early.filter(|_| !is_excused) {
            None => Ok(()),
            Some(other) => Err(format!(
                "partition {partition} starts at m{member}, and the hooks of m{other} still run, \
                 which renewed its lease less than that ago"
            )),
        }
    }

    fn end(&mut self, member: usize, partition: usize) {
        self.runs[partition].retain(|run| run.member != member);
    }
}

impl Invariant for HandedOn {
    const NUMBER: &'static str = "I4";
    const PROPERTY: &'static str =
        "nothing starts before it has stopped elsewhere, or the lease there is over";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        self.excuse.observe(seen);
        match *seen.fact {
            Fact::WorkerWritten {
                by,
                orphaned: false,
                record,
                ..
            } if record.life == Life::Live && record.beat > 0 => {
                let renewal = Renewal {
                    session: record.session,
                    at: seen.at,
                    lease: record.lease,
                };
                self.renewed(by, renewal);
            }
            Fact::StartCalled {
                member, partition, ..
            } => return self.begin(seen.at, member, partition),
            Fact::StartEnded {
                member,
                partition,
                failed: true,
            }
            | Fact::StopEnded { member, partition } => self.end(member, partition),
            Fact::Gone { member, .. } => {
                self.renewals[member] = None;
                (0..self.runs.len()).for_each(|partition| self.end(member, partition));
            }
            Fact::Disturbed {
                whose: Disturbed::Sessions,
                until,
            } => self.disturbed = until.max(self.disturbed),
            _ => {}
        }
        Ok(())
    }
}
