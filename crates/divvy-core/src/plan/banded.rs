//! Weighted partitions, every worker inside a band on both sides, with few moves.
//!
//! Everything whose owner is alive stays; orphans and new partitions are placed; workers outside the band are
//! repaired. From a cold start (nothing stays) placing aims at a narrower band, so that weights may drift
//! without a move. What a reader would get wrong: a worker inside the band is never touched for the sake of a
//! better balance. Only a cold start evens out.
//!
//! With zones, a zone's load per unit of weight is held inside a third of the band around the same target, in
//! addition to the band of every worker, which stays around the mean of all workers, not of its zone. Both
//! are repaired by the same steps and measured by one sum, so a partition crosses zones only where that helps
//! a worker or a zone that is outside.
//!
//! Guarantees, for any input: total, caps, idempotent. A state inside the band, with no worker over its share of
//! extremes, moves nothing but orphans. Which share that is depends on how many partitions are extreme, so a
//! drift across that threshold may move one. A giant ([`Certificate::giants`]) never shares its worker unless
//! caps force it. Does not guarantee: the fewest moves, or the band where partitions are too coarse for it; then
//! the squared violations end in a minimum that no single step improves, and [`Certificate::outside`] counts who
//! is outside. Nor even counts: preference keeps them near the mean from a cold start, but a worker that joins
//! is filled by few heavy partitions, because those are the fewest moves.
//!
//! [`Certificate::giants`]: super::Certificate::giants
//! [`Certificate::outside`]: super::Certificate::outside

use std::borrow::Cow;
use std::cmp::Reverse;

use super::band::Band;
use super::bound::lower_bound;
use super::certificate::Certificate;
use super::decision::Decision;
use super::ledger::Ledger;
use super::outcome::{Cause, Plan};
use super::place::{Unplaced, place};
use super::problem::{NONE, PlanError, Problem, Slot, Weights};
use super::repair::repair;
use super::target::{Goal, Kept, Limits, Targets};
use super::zone::Zones;

/// Plans loads into a band; `preferred` names the worker a partition hashes to, and is asked only for
/// partitions that must be placed and are not extreme.
///
/// ```
/// use divvy_core::plan::{Band, Problem, Slot, Weights, banded};
///
/// let slots = [Slot::new(1.0), Slot::new(1.0), Slot::new(1.0)];
/// let weights = Weights::Each(&[40, 60, 50, 50, 45, 55]);
/// let problem = Problem { weights, slots: &slots, previous: &[0, 0, 1, 1, 0, 1] };
/// let plan = banded(&problem, &Band::default(), |_partition| 0)?;
/// assert_eq!((plan.certificate.outside, plan.certificate.moves), (0, 2));
/// assert!(plan.moves.iter().all(|change| change.to == 2));
/// # Ok::<(), divvy_core::plan::PlanError>(())
/// ```
///
/// # Errors
/// No worker may own anything, the caps do not suffice, or the problem or band contradicts itself.
pub fn banded(
    problem: &Problem<'_>,
    band: &Band,
    preferred: impl FnMut(u32) -> u32,
) -> Result<Plan, PlanError> {
    let zones = Zones::single(problem.slots);
    plan(problem, band, &zones, preferred, NONE).map(|(plan, _)| plan)
}

/// Plans loads into a band for zones and a band for workers; otherwise as [`banded`](fn@banded).
///
/// # Errors
/// As [`banded`](fn@banded).
pub fn zoned_banded(
    problem: &Problem<'_>,
    band: &Band,
    preferred: impl FnMut(u32) -> u32,
) -> Result<Plan, PlanError> {
    let zones = Zones::new(problem.slots);
    plan(problem, band, &zones, preferred, NONE).map(|(plan, _)| plan)
}

/// Plans as [`banded`](fn@banded), or as [`zoned_banded`] where `by_zone`, and says how one partition came to its
/// owner.
pub(crate) fn banded_decision(
    problem: &Problem<'_>,
    band: &Band,
    by_zone: bool,
    preferred: impl FnMut(u32) -> u32,
    partition: u32,
) -> Result<(Plan, Decision), PlanError> {
    let zones = if by_zone {
        Zones::new(problem.slots)
    } else {
        Zones::single(problem.slots)
    };
    let (plan, decision) = plan(problem, band, &zones, preferred, partition)?;
    Ok((plan, decision.expect("the partition was watched")))
}

/// A plan by weight just after it was made.
pub(super) struct Planned<'a> {
    pub(super) ledger: &'a Ledger<'a>,
    pub(super) targets: &'a Targets,
    /// What was placed, in that order.
    pub(super) pool: &'a [Unplaced],
    pub(super) is_cold: bool,
}

impl Planned<'_> {
    /// What placing aimed at.
    pub(super) fn goal(&self) -> &Goal {
        goal(self.targets, self.is_cold)
    }
}

fn goal(targets: &Targets, is_cold: bool) -> &Goal {
    if is_cold {
        &targets.rest
    } else {
        &targets.warm
    }
}

/// Plans, and decides about `watched` where that is a partition.
fn plan(
    problem: &Problem<'_>,
    band: &Band,
    zones: &Zones,
    preferred: impl FnMut(u32) -> u32,
    watched: u32,
) -> Result<(Plan, Option<Decision>), PlanError> {
    problem.validate()?;
    band.validate()?;
    problem.held()?;
    let weights = match problem.weights {
        Weights::Each(weights) => Cow::Borrowed(weights),
        Weights::Even => Cow::Owned(vec![1; problem.previous.len()]),
    };
    let mut ledger = Ledger::new(&weights, problem.slots, zones, problem.previous);
    let kept = Kept {
        owners: &ledger.owners,
        loads: &ledger.loads,
        counts: &ledger.counts,
    };
    let targets = Targets::new(&weights, problem.slots, zones, band, kept);
    ledger.count_extremes(&targets);
    ledger.watch(watched);
    let is_cold = ledger.counts.iter().all(|&count| count == 0);

    seat_giants(&mut ledger, &targets, problem.previous);
    let pool = free(&mut ledger, &targets, problem.previous);
    let goal = goal(&targets, is_cold);
    place(&mut ledger, &targets, goal, &pool, preferred);
    if is_cold {
        repair(&mut ledger, &targets, &targets.rest, &targets.rest);
    }
    // A cold start too ends with the repair a warm one would do, or planning again might move something.
    repair(&mut ledger, &targets, &targets.outer, &targets.warm);
    let plan = finish(problem, &ledger, &targets);
    let planned = Planned {
        ledger: &ledger,
        targets: &targets,
        pool: &pool,
        is_cold,
    };
    let decision =
        (watched != NONE).then(|| Decision::by_weight(&planned, problem.previous, watched));
    Ok((plan, decision))
}

/// Why a partition has to be placed.
fn pool_cause(previous: u32) -> Cause {
    match previous {
        NONE => Cause::New,
        _ => Cause::WorkerGone,
    }
}

/// Puts every giant on its host.
fn seat_giants(ledger: &mut Ledger<'_>, targets: &Targets, previous: &[u32]) {
    for &(giant, host) in &targets.giants {
        let owner = ledger.owners[giant as usize];
        if owner == host {
            continue;
        }
        let cause = match owner {
            NONE => pool_cause(previous[giant as usize]),
            _ => Cause::Over,
        };
        ledger.note(giant, cause, None);
        ledger.assign(giant, host, targets);
    }
}

/// Takes what is over a cap from its worker, the lightest first, and returns all that has no owner, heaviest
/// first.
fn free(ledger: &mut Ledger<'_>, targets: &Targets, previous: &[u32]) -> Vec<Unplaced> {
    let weights = ledger.weights;
    let unplaced = |partition: u32, cause: Cause| Unplaced {
        weight: weights[partition as usize],
        partition,
        cause,
    };
    let mut pool = Vec::new();
    let over_cap = |ledger: &Ledger<'_>, worker: usize| {
        ledger.counts[worker].saturating_sub(ledger.slots[worker].cap())
    };
    if (0..ledger.slots.len()).any(|worker| over_cap(ledger, worker) > 0) {
        let mut order: Vec<u32> = (0..ledger.owners.len() as u32).collect();
        order.sort_unstable_by_key(|&partition| (weights[partition as usize], Reverse(partition)));
        for partition in order {
            let owner = ledger.owners[partition as usize];
            if owner == NONE || targets.giant_of[owner as usize] == partition {
                continue;
            }
            if over_cap(ledger, owner as usize) > 0 {
                ledger.assign(partition, NONE, targets);
                pool.push(unplaced(partition, Cause::Cap));
            }
        }
    }
    let is_freed = |ledger: &Ledger<'_>, partition: usize| {
        // A partition over a cap had an eligible owner; every other one without an owner had none.
        let slot = ledger.slots.get(previous[partition] as usize);
        slot.is_some_and(Slot::is_eligible)
    };
    for (partition, &owner) in ledger.owners.iter().enumerate() {
        if owner == NONE && !is_freed(ledger, partition) {
            let cause = pool_cause(previous[partition]);
            pool.push(unplaced(partition as u32, cause));
        }
    }
    pool.sort_unstable_by_key(|unplaced| (Reverse(unplaced.weight), unplaced.partition));
    pool
}

fn finish(problem: &Problem<'_>, ledger: &Ledger<'_>, targets: &Targets) -> Plan {
    let moves = ledger.moves(problem.previous);
    let mut certificate = Certificate::measure(problem, &ledger.loads, &ledger.counts, &moves);
    let outside = |goal: &[Limits], loads: &[u64]| {
        goal.iter()
            .zip(loads)
            .filter(|(limits, load)| !limits.contains(**load))
            .count() as u32
    };
    certificate.outside = outside(&targets.outer.workers, &ledger.loads);
    certificate.zones_outside = outside(&targets.outer.zones, &ledger.zone_loads);
    if ledger.zones.len() == 1 {
        certificate.zones_outside = 0;
    }
    certificate.giants = targets.giants.len() as u32;
    certificate.target_over_mean = if targets.mean > 0.0 {
        targets.rate / targets.mean
    } else {
        1.0
    };
    certificate.extremes = targets.extremes;
    certificate.extremes_max = ledger.extremes.iter().copied().max().unwrap_or(0);
    let eligible = problem
        .slots
        .iter()
        .filter(|slot| slot.is_eligible())
        .count() as u32;
    certificate.extremes_limit = targets.extremes.div_ceil(eligible) + 1;
    (certificate.flat_bound, certificate.lower_bound) = lower_bound(problem, ledger, targets);
    Plan {
        owners: ledger.owners.clone(),
        loads: ledger.loads.clone(),
        counts: ledger.counts.clone(),
        moves,
        certificate,
    }
}
