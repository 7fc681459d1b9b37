//! The account of owners that were decided elsewhere, by hashing alone.

use super::balanced::finish_any;
use super::outcome::{Cause, Move, Plan};
use super::problem::{GONE, NONE, Problem};

/// What it takes to get from the previous owners to `owners`, one for each partition, each of them a slot.
///
/// The lower bound is the fewest moves to any assignment with these counts.
pub(crate) fn given(problem: &Problem<'_>, owners: &[u32]) -> Plan {
    let mut counts = vec![0u32; problem.slots.len()];
    let mut held = vec![0u32; problem.slots.len()];
    let mut moves = Vec::new();
    let mut new = 0u32;
    for (partition, (&from, &to)) in problem.previous.iter().zip(owners).enumerate() {
        counts[to as usize] += 1;
        match from {
            NONE => new += 1,
            GONE => {}
            slot => held[slot as usize] += 1,
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
    let kept_most: u32 = counts.iter().zip(&held).map(|(a, b)| a.min(b)).sum();
    let lower_bound = owners.len() as u32 - new - kept_most;
    finish_any(problem, owners.to_vec(), counts, moves, lower_bound)
}
