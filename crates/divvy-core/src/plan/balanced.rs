//! Even counts with the fewest moves.
//!
//! A worker's exact share is the number of partitions in proportion to its weight, limited by its cap (what
//! it cannot take is spread over the others). Balanced means that every worker owns its share rounded down or
//! up; for equal workers without caps that is max − min ≤ 1. What a reader would get wrong: with unequal
//! weights this is the quota rule, not the largest-remainder method. Remainders decide only among workers for
//! whom it makes no move, because strict largest remainders would move partitions for a fraction of one.
//!
//! Partition weights are not looked at, except to report loads.
//!
//! Guarantees: the number of moves is the minimum over all balanced assignments, and
//! [`Certificate::lower_bound`] equals it. Does not guarantee: which partitions of a full worker stay (those
//! of the smallest index do).
//!
//! [`Certificate::lower_bound`]: super::Certificate::lower_bound

use super::certificate::Certificate;
use super::outcome::{Cause, Move, Plan, Reason, Rejection};
use super::problem::{NONE, PlanError, Problem, Slot, Weights};
use super::refill::refill;
use super::release::released;
use super::share::{Share, seats, shares, units};

/// Plans even counts; `preferred` names the worker a partition hashes to, and is asked only for those that
/// must be placed.
///
/// # Errors
/// No worker may own anything, the caps do not suffice, or the problem contradicts itself.
pub fn balanced(
    problem: &Problem<'_>,
    preferred: impl FnMut(u32) -> u32,
) -> Result<Plan, PlanError> {
    problem.validate()?;
    let (held, new) = problem.held()?;
    let total = problem.previous.len() as u64;
    let shares = shares(total, &units(problem.slots), &caps(problem.slots));
    let seats = seats(total, &shares, |worker| gain(&held, &shares, worker));
    let cause = |worker: usize| {
        let share = shares[worker];
        over_cause(&problem.slots[worker], &share, held[worker], Cause::Under)
    };
    let (owners, moves) = fill(problem, &seats, &held, cause, preferred);

    let counts: Vec<u32> = seats.iter().map(|&seat| seat as u32).collect();
    let kept_most: u64 = (0..seats.len())
        .map(|i| seats[i].min(u64::from(held[i])))
        .sum();
    let lower_bound = total - u64::from(new) - kept_most;
    Ok(finish(problem, owners, counts, moves, lower_bound as u32))
}

pub(super) fn caps(slots: &[Slot]) -> Vec<u64> {
    slots.iter().map(|slot| u64::from(slot.cap())).collect()
}

/// What the larger of two seats saves in moves: one, if the worker already holds that many.
pub(super) fn gain(held: &[u32], shares: &[Share], worker: usize) -> i64 {
    i64::from(u64::from(held[worker]) > shares[worker].lo)
}

/// Why a worker that holds more than its seats gives some up. `fair` is the cause when its count alone was
/// balanced.
pub(super) fn over_cause(slot: &Slot, share: &Share, held: u32, fair: Cause) -> Cause {
    if held > slot.cap() {
        Cause::Cap
    } else if u64::from(held) > share.hi {
        Cause::Over
    } else {
        fair
    }
}

/// Keeps up to its seats on every worker and refills: first all that their preferred worker has a seat for, then
/// lightest first.
pub(super) fn fill(
    problem: &Problem<'_>,
    seats: &[u64],
    held: &[u32],
    cause: impl Fn(usize) -> Cause,
    mut preferred: impl FnMut(u32) -> u32,
) -> (Vec<u32>, Vec<Move>) {
    let cause = |from: u32| match problem.slots.get(from as usize) {
        None if from == NONE => Cause::New,
        Some(slot) if slot.is_eligible() => cause(from as usize),
        _ => Cause::WorkerGone,
    };
    let released = released(problem, seats, held);
    // All at once: a preference may be far away in memory, and these do not wait for each other.
    let wanted: Vec<u32> = released.iter().map(|&at| preferred(at)).collect();
    let free = |(&seats, &held): (&u64, &u32)| (seats as u32).saturating_sub(held);
    let mut left: Vec<u32> = seats.iter().zip(held).map(free).collect();
    let mut rest = Vec::new();
    // Whoever is turned down here gets its worker below.
    let place = |(index, (partition, worker)): (usize, (u32, u32))| {
        let from = problem.previous[partition as usize];
        let mut change = Move {
            partition,
            from,
            to: worker,
            cause: cause(from),
            rejected: None,
        };
        match left.get_mut(worker as usize) {
            Some(seats) if *seats > 0 => *seats -= 1,
            _ => {
                change.rejected = Some(reject(problem.slots, worker));
                rest.push(index);
            }
        }
        change
    };
    let pairs = released.into_iter().zip(wanted);
    let mut moves: Vec<Move> = pairs.enumerate().map(place).collect();
    let takers = refill(problem.slots, seats, &left, rest.len());
    for (index, taker) in rest.into_iter().zip(takers) {
        moves[index].to = taker;
    }
    let mut owners = problem.previous.to_vec();
    for change in &moves {
        owners[change.partition as usize] = change.to;
    }
    (owners, moves)
}

fn reject(slots: &[Slot], worker: u32) -> Rejection {
    let takes = slots.get(worker as usize).is_some_and(Slot::is_eligible);
    let reason = if takes {
        Reason::Full
    } else {
        Reason::Ineligible
    };
    Rejection { worker, reason }
}

/// Adds loads and certificate to a finished division by count with the fewest moves.
pub(super) fn finish(
    problem: &Problem<'_>,
    owners: Vec<u32>,
    counts: Vec<u32>,
    moves: Vec<Move>,
    lower_bound: u32,
) -> Plan {
    let plan = finish_any(problem, owners, counts, moves, lower_bound);
    assert_eq!(plan.certificate.moves, lower_bound, "moves are minimal");
    plan
}

/// Adds loads and certificate to owners that need not be minimal in moves.
pub(super) fn finish_any(
    problem: &Problem<'_>,
    owners: Vec<u32>,
    counts: Vec<u32>,
    moves: Vec<Move>,
    lower_bound: u32,
) -> Plan {
    let loads = match problem.weights {
        Weights::Even => counts.iter().map(|&count| u64::from(count)).collect(),
        Weights::Each(weights) => {
            let mut loads = vec![0; counts.len()];
            for (&owner, &weight) in owners.iter().zip(weights) {
                loads[owner as usize] += weight;
            }
            loads
        }
    };
    let mut certificate = Certificate::measure(problem, &loads, &counts, &moves);
    certificate.lower_bound = lower_bound;
    certificate.flat_bound = lower_bound;
    Plan {
        owners,
        loads,
        counts,
        moves,
        certificate,
    }
}
