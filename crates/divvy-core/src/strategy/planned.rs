//! What the strategies that know the previous assignment share.

use super::Ring;
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
pub(super) fn rendezvous_preference<'a>(
    workers: &Workers,
    partitions: &'a Partitions,
    interned: &Interned,
    seed: u64,
) -> Result<impl FnMut(u32) -> u32 + use<'a>, Error> {
    let mut chooser = Chooser::new(workers, seed)?;
    let unowned = interned.unowned();
    let owners = chooser.choose_all(names(partitions, &unowned));
    let ahead = by_index(partitions, &unowned, owners);
    Ok(looked_up(partitions, ahead, move |name| {
        chooser.choose(name)
    }))
}

/// On a ring, the worker that a partition of the given index prefers.
pub(super) fn ring_preference<'a>(
    ring: Ring,
    partitions: &'a Partitions,
    interned: &Interned,
) -> impl FnMut(u32) -> u32 + use<'a> {
    let unowned = interned.unowned();
    let owners = names(partitions, &unowned).map(|name| ring.owner_of(name));
    let ahead = by_index(partitions, &unowned, owners.collect());
    looked_up(partitions, ahead, move |name| ring.owner_of(name))
}

fn names<'a>(partitions: &'a Partitions, indices: &'a [u32]) -> impl Iterator<Item = &'a str> {
    let partitions = partitions.as_slice();
    indices
        .iter()
        .map(|&index| partitions[index as usize].as_str())
}

/// The owners of some partitions by index, with [`NONE`] for the others.
fn by_index(partitions: &Partitions, indices: &[u32], owners: Vec<u32>) -> Vec<u32> {
    if owners.is_empty() || owners.len() == partitions.len() {
        return owners;
    }
    let mut by_index = vec![NONE; partitions.len()];
    for (&index, owner) in indices.iter().zip(owners) {
        by_index[index as usize] = owner;
    }
    by_index
}

/// Looks a preference up where it was chosen ahead, and chooses it otherwise.
///
/// Partitions without an owner are certain to be asked for, but by weight,
/// which is any order in memory: every name would be waited for. Ahead they are
/// chosen in the order of the set, where names follow each other and no choice
/// waits for the one before. The others are chosen when the planner frees them.
fn looked_up(
    partitions: &Partitions,
    ahead: Vec<u32>,
    mut choose: impl FnMut(&str) -> u32,
) -> impl FnMut(u32) -> u32 {
    move |partition| match ahead.get(partition as usize) {
        Some(&owner) if owner != NONE => owner,
        _ => choose(partitions.as_slice()[partition as usize].as_str()),
    }
}
