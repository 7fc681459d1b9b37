//! What a change would do, before it is done.

mod document;

pub use document::PlanDocument;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::Explanation;
use crate::moves::{CONSIDERED_MAX, Considered};
use crate::partition::Partitions;
use crate::plan::{Cause, Certificate, GONE, NONE, Plan, Problem, Reason, Slot, Weights};
use crate::strategy::Strategy;
use crate::worker::Workers;

/// An assignment together with the account of how it came about: every change
/// with its cause, and a certificate of how good it is and could have been.
///
/// ```
/// use divvy_core::{Balanced, Cause, Partitions, Strategy, Workers};
///
/// let partitions = Partitions::shards([("default", 2048)])?;
/// let three = Balanced::new().assign(&Workers::numbered("worker", 3)?, &partitions, None)?;
/// let four = Workers::numbered("worker", 4)?;
/// let proposal = Balanced::new().propose(&four, &partitions, Some(&three))?;
///
/// assert_eq!(proposal.assignment.counts(), [512; 4]);
/// assert_eq!(proposal.certificate.moves, 512);
/// assert_eq!(proposal.certificate.lower_bound, 512);
/// assert!(proposal.changes.iter().all(|change| change.to == "worker-3"));
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Who would own what.
    pub assignment: Assignment,
    /// Every partition that has another owner than before or none before, in
    /// the order of their text.
    pub changes: Vec<Change>,
    /// How good it is.
    pub certificate: Certificate,
    /// The first in rank for some of the changed partitions, where somebody
    /// has asked for that: see [`Proposal::explained`].
    pub considered: BTreeMap<String, Vec<Considered>>,
}

/// A partition that would get another owner, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The partition's text form.
    pub partition: String,
    /// Who owns it; `None` where the partition is new.
    pub from: Option<String>,
    /// Who would own it.
    pub to: String,
    /// Why it could not stay.
    pub cause: Cause,
    /// The worker that hashing prefers and that was passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejected>,
}

/// A worker that was asked first and did not get the partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Its id.
    pub worker: String,
    /// Why it was passed over.
    pub reason: Reason,
}

/// The first of a ranking, and who got the partition.
fn considered(change: &Change, explanation: &Explanation) -> Vec<Considered> {
    let ranked = explanation.ranking.iter().enumerate();
    let told =
        ranked.filter(|(place, ranked)| *place < CONSIDERED_MAX || ranked.worker == change.to);
    let told = told.map(|(_, ranked)| {
        let passed_over = change.rejected.as_ref();
        let passed_over = passed_over.filter(|rejected| rejected.worker == ranked.worker);
        let rejected = passed_over.map(|rejected| rejected.reason.to_string());
        let rejected = rejected.or_else(|| ranked.veto.map(|veto| veto.to_string()));
        Considered {
            worker: ranked.worker.clone(),
            score: ranked.score,
            rejected: rejected.filter(|_| ranked.worker != change.to),
        }
    });
    told.collect()
}

/// Names turned into the planner's indices.
#[derive(Debug)]
pub(crate) struct Interned {
    slots: Vec<Slot>,
    loads: Vec<u64>,
    previous: Vec<u32>,
    /// Whether all partitions weigh the same.
    pub(crate) is_even: bool,
}

impl Interned {
    pub(crate) fn new(
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Self {
        let loads: Vec<u64> = partitions.loads().collect();
        Self {
            slots: slots(workers),
            is_even: partitions.is_even(),
            loads,
            previous: previous_owners(workers, partitions, previous),
        }
    }

    /// The partitions that nobody who may own them owns.
    pub(crate) fn unowned(&self) -> Vec<u32> {
        let is_unowned = |&owner: &u32| match self.slots.get(owner as usize) {
            Some(slot) => !slot.is_eligible(),
            None => true,
        };
        let owned = (0..).zip(&self.previous);
        owned
            .filter(|(_, owner)| is_unowned(owner))
            .map(|(partition, _)| partition)
            .collect()
    }

    /// The problem by weight.
    pub(crate) fn problem(&self) -> Problem<'_> {
        // A weight of 1 each spares the planner a pass over memory.
        let is_unit = self.is_even && self.loads.first() == Some(&1);
        let weights = if is_unit {
            Weights::Even
        } else {
            Weights::Each(&self.loads)
        };
        Problem {
            weights,
            slots: &self.slots,
            previous: &self.previous,
        }
    }

    /// Names given back to what the planner decided.
    pub(crate) fn proposal(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
        plan: Plan,
    ) -> Result<Proposal, Error> {
        let id = |index: u32| workers.as_slice()[index as usize].id().to_owned();
        let changes = plan
            .moves
            .iter()
            .map(|change| {
                let partition = &partitions.as_slice()[change.partition as usize];
                let from = match change.from {
                    NONE => None,
                    GONE => previous
                        .and_then(|previous| previous.owner_of(partition.as_str()))
                        .map(|worker| worker.id().to_owned()),
                    index => Some(id(index)),
                };
                Change {
                    partition: partition.as_str().to_owned(),
                    from,
                    to: id(change.to),
                    cause: change.cause,
                    rejected: change.rejected.map(|rejection| Rejected {
                        worker: id(rejection.worker),
                        reason: rejection.reason,
                    }),
                }
            })
            .collect();
        Ok(Proposal {
            assignment: Assignment::new(workers, partitions, plan.owners)?,
            changes,
            certificate: plan.certificate,
            considered: BTreeMap::new(),
        })
    }
}

impl Proposal {
    /// Adds what a strategy says of the first changes, for people: how workers
    /// rank for them and why the first did not get them. `goes_on` is asked
    /// before each, because a strategy may take as long for one as for all.
    pub fn explained(
        mut self,
        strategy: &dyn Strategy,
        previous: Option<&Assignment>,
        mut goes_on: impl FnMut() -> bool,
    ) -> Self {
        let (workers, partitions) = (self.assignment.workers(), self.assignment.partitions());
        for change in &self.changes {
            if !goes_on() {
                break;
            }
            let explained = strategy.explain(&change.partition, workers, partitions, previous);
            let Ok(explanation) = explained else { break };
            let considered = considered(change, &explanation);
            self.considered.insert(change.partition.clone(), considered);
        }
        self
    }

    /// The account of an assignment that was made without looking at the
    /// previous one.
    pub(crate) fn of(assignment: Assignment, previous: Option<&Assignment>) -> Result<Self, Error> {
        let (workers, partitions) = (
            assignment.workers().clone(),
            assignment.partitions().clone(),
        );
        let interned = Interned::new(&workers, &partitions, previous);
        let plan = crate::plan::given(&interned.problem(), assignment.owners());
        interned.proposal(&workers, &partitions, previous, plan)
    }
}

fn slots(workers: &Workers) -> Vec<Slot> {
    let mut zones: Vec<Option<&str>> = workers.iter().map(|worker| worker.zone()).collect();
    zones.sort_unstable();
    zones.dedup();
    let slot = |worker: &crate::Worker| Slot {
        weight: if worker.is_eligible() {
            worker.weight()
        } else {
            0.0
        },
        max_partitions: worker.max_partitions().map(Into::into),
        zone: zones
            .binary_search(&worker.zone())
            .expect("every worker's zone is in the list") as u32,
    };
    workers.iter().map(slot).collect()
}

/// By index of the partition, the index of who owned it before, [`NONE`] where
/// nobody did and [`GONE`] where that worker is no longer there.
fn previous_owners(
    workers: &Workers,
    partitions: &Partitions,
    previous: Option<&Assignment>,
) -> Vec<u32> {
    let Some(previous) = previous else {
        return vec![NONE; partitions.len()];
    };
    let renumbered: Vec<u32> = previous
        .workers()
        .iter()
        .map(|worker| {
            workers
                .index_of(worker.id())
                .map_or(GONE, |index| index as u32)
        })
        .collect();
    let owners = previous.owners();
    partitions
        .places_in(previous.partitions())
        .map(|place| place.map_or(NONE, |index| renumbered[owners[index] as usize]))
        .collect()
}
