//! What the strategies that know the previous assignment share.

mod story;

use super::Ring;
use super::rendezvous::Chooser;
use crate::error::{Error, Invalid};
use crate::explain::{Explanation, LoadsAt};
use crate::partition::Partitions;
use crate::plan::{Decision, NONE, PlanError, What};
use crate::proposal::{Interned, Proposal};
use crate::worker::Workers;
use story::Story;

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
/// planned owner, what each worker had when that was decided, and for each
/// worker before the owner the reason why it was passed over.
pub(super) fn explain(
    mut hashed: Explanation,
    proposal: &Proposal,
    decision: &Decision,
    method: &str,
) -> Explanation {
    let (workers, partition) = (proposal.assignment.workers(), hashed.partition.as_str());
    let owner = proposal.assignment.owner_of(partition);
    let owner = owner.expect("assignments are total").id().to_owned();
    let mut is_before = true;
    for ranked in &mut hashed.ranking {
        let index = workers.index_of(&ranked.worker);
        let index = index.expect("all that are ranked were planned with");
        is_before &= ranked.worker != owner;
        ranked.load = ranked.veto.is_none().then_some(decision.loads[index]);
        if is_before {
            ranked.veto = ranked.veto.or(decision.vetoes[index]);
        }
    }
    let changes = &proposal.changes;
    let at = changes.binary_search_by(|change| change.partition.as_str().cmp(partition));
    let story = Story {
        workers,
        owner: &owner,
        first: &hashed
            .ranking
            .iter()
            .find(|ranked| ranked.load.is_some())
            .expect("somebody owns it")
            .worker,
        change: at.ok().map(|at| &changes[at]),
        decision,
    };
    Explanation {
        why: Some(story.told()),
        method: method.to_owned(),
        loads: Some(LoadsAt {
            by_count: decision.by_count,
            after: matches!(decision.what, What::Stayed(_)),
        }),
        owner,
        ..hashed
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
