//! The account of owners that were decided elsewhere, by hashing alone.

use super::balanced::finish_any;
use super::outcome::{Cause, Move, Plan};
use super::problem::{NONE, Problem, Weights};

/// What it takes to get from the previous owners to `owners`, one for each partition, each of them a slot.
///
/// The lower bound is the fewest moves to an assignment in which every worker's level is between the lowest and the
/// highest here. With weights it is only the number of orphans, which move whatever the plan.
pub(crate) fn given(problem: &Problem<'_>, owners: &[u32]) -> Plan {
    let mut counts = vec![0u32; problem.slots.len()];
    let mut held = vec![0u32; problem.slots.len()];
    let mut moves = Vec::new();
    let (mut new, mut orphans) = (0u32, 0u32);
    for (partition, (&from, &to)) in problem.previous.iter().zip(owners).enumerate() {
        counts[to as usize] += 1;
        match problem.slots.get(from as usize) {
            Some(slot) if slot.is_eligible() => held[from as usize] += 1,
            None if from == NONE => new += 1,
            _ => orphans += 1,
        }
        if from == to {
            continue;
        }
        let cause = match problem.slots.get(from as usize) {
            None if from == NONE => Cause::New,
            Some(slot) if slot.is_eligible() => Cause::Preferred,
            _ => Cause::WorkerGone,
        };
        moves.push(Move {
            partition: partition as u32,
            from,
            to,
            cause,
            rejected: None,
        });
    }
    let needed = match problem.weights {
        Weights::Even => to_be_as_even(problem, &counts, &held, new, orphans),
        Weights::Each(_) => orphans,
    };
    finish_any(problem, owners.to_vec(), counts, moves, needed)
}

/// How many have to move so that every worker has at least the lowest and at most the highest level of `counts`.
fn to_be_as_even(
    problem: &Problem<'_>,
    counts: &[u32],
    held: &[u32],
    new: u32,
    orphans: u32,
) -> u32 {
    let eligible = || (0..counts.len()).filter(|&slot| problem.slots[slot].is_eligible());
    let level = |slot: usize| f64::from(counts[slot]) / problem.slots[slot].weight;
    let lowest = eligible().map(level).fold(f64::INFINITY, f64::min);
    let highest = eligible().map(level).fold(0.0, f64::max);
    let (mut missing, mut surplus) = (0u32, 0u32);
    for slot in eligible() {
        // A count is its own bound at its own level, whatever rounding does to the product.
        let weight = problem.slots[slot].weight;
        let least = ((lowest * weight * (1.0 - 1e-9)).ceil() as u32).min(counts[slot]);
        let most = ((highest * weight * (1.0 + 1e-9)).floor() as u32).max(counts[slot]);
        missing += least.saturating_sub(held[slot]);
        surplus += held[slot].saturating_sub(most);
    }
    (orphans + surplus).max(missing.saturating_sub(new))
}
