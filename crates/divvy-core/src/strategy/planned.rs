//! What the strategies that know the previous assignment share.

use super::rendezvous::Chooser;
use crate::error::{Error, Invalid};
use crate::explain::Explanation;
use crate::partition::Partitions;
use crate::plan::{NONE, PlanError, Reason};
use crate::proposal::{Interned, Proposal};
use crate::worker::{Veto, Workers};

/// The planner's errors in terms of names. The sets have been checked when
/// they were made, so only what lies between them can go wrong.
pub(super) fn error_of(error: PlanError, workers: &Workers) -> Error {
    match error {
        PlanError::NoRoom { partitions, room } => Error::NoRoom { partitions, room },
        PlanError::NoWorkers => match workers.eligible() {
            Err(error) => error,
            Ok(_) => unreachable!("an eligible worker may own partitions"),
        },
        PlanError::BandRange { field, value } => {
            Invalid::new(field, value, "is out of bounds").into()
        }
        other => unreachable!("the sets were checked when they were made: {other}"),
    }
}

/// Turns the ranking of a hash into that of a plan: the same order, with the
/// planned owner, and for each worker before it the reason why it was passed
/// over.
pub(super) fn explain(mut hashed: Explanation, proposal: &Proposal, method: &str) -> Explanation {
    let partition = hashed.partition.as_str();
    let owner = proposal
        .assignment
        .owner_of(partition)
        .expect("assignments are total")
        .id()
        .to_owned();
    let change = proposal
        .changes
        .binary_search_by(|change| change.partition.as_str().cmp(partition))
        .ok()
        .map(|index| &proposal.changes[index]);
    let rejected = change.and_then(|change| change.rejected.as_ref());
    for ranked in &mut hashed.ranking {
        if ranked.worker == owner {
            break;
        }
        let reason = rejected
            .filter(|rejected| rejected.worker == ranked.worker)
            .map(|rejected| veto_of(rejected.reason));
        let otherwise = match change {
            None => Veto::Kept,
            Some(_) => Veto::Heavier,
        };
        ranked.veto = ranked.veto.or(reason).or(Some(otherwise));
    }
    let story = match change {
        None => "It stays where it was.".to_owned(),
        Some(change) => match &change.from {
            None => format!("It is new: placed on {owner}."),
            Some(from) => format!("It moves from {from} to {owner}: {}.", change.cause),
        },
    };
    Explanation {
        method: format!("{story} {method}"),
        owner,
        ..hashed
    }
}

fn veto_of(reason: Reason) -> Veto {
    match reason {
        Reason::Full => Veto::Full,
        Reason::Ineligible => Veto::ZeroWeight,
        Reason::OverBand => Veto::OverBand,
        Reason::OverZone => Veto::OverZone,
        Reason::Reserved => Veto::Heavier,
    }
}

/// By rendezvous, the worker that a partition of the given index prefers.
///
/// Those without an owner are certain to be asked for and are placed in one
/// go; the others one by one, when the planner frees them.
pub(super) fn rendezvous_preference<'a>(
    workers: &Workers,
    partitions: &'a Partitions,
    interned: &Interned,
    seed: u64,
) -> Result<impl FnMut(u32) -> u32 + use<'a>, Error> {
    let mut chooser = Chooser::new(workers, seed)?;
    let name = move |partition: u32| partitions.as_slice()[partition as usize].as_str();
    let unowned = interned.unowned();
    let mut chosen = Vec::new();
    if !unowned.is_empty() {
        chosen = vec![NONE; partitions.len()];
        let owners = chooser.choose_all(unowned.iter().map(|&partition| name(partition)));
        for (partition, owner) in unowned.into_iter().zip(owners) {
            chosen[partition as usize] = owner;
        }
    }
    Ok(move |partition: u32| match chosen.get(partition as usize) {
        Some(&owner) if owner != NONE => owner,
        _ => chooser.choose(name(partition)),
    })
}
