//! A lower bound on the moves of any plan by weight that is at least as balanced.
//!
//! Every bound below counts partitions that have to leave some worker or zone, or arrive at one, whatever
//! else happens. Leaving: a worker over its upper limit is under it soonest by giving its heaviest away.
//! Arriving: a worker under its lower limit needs at least what it lacks, in pieces no heavier than the
//! heaviest partition; what is placed anyway (orphans, new ones) may be among those pieces. A partition
//! leaves one worker, so leaving adds up over workers, and so does arriving; the two may be the same move, so
//! only the larger counts.
//!
//! What a reader would get wrong: the bound is for *that* balance. Where a plan leaves a worker outside the
//! band, plans that leave it as far outside are compared too. So the bound never exceeds the moves, by
//! construction.

use std::cmp::Reverse;

use super::ledger::Ledger;
use super::problem::{NONE, Problem, Slot};
use super::target::{Limits, Targets};

/// The bound without zones and the bound with them.
pub(super) fn lower_bound(
    problem: &Problem<'_>,
    ledger: &Ledger<'_>,
    targets: &Targets,
) -> (u32, u32) {
    let kept = Kept::new(problem, ledger, targets);
    let owner = |partition: usize| kept.owners[partition];
    let limits = widened(&targets.outer.workers, &ledger.loads);
    // Giants could have other hosts, and then the limits of workers of different weight would differ too.
    let has_limits = targets.giants.is_empty() || is_uniform(&targets.units);
    let mut leaving = vec![0; ledger.slots.len()];
    if has_limits {
        leaving = kept.leaving(&limits, &kept.loads, owner);
    }
    for (worker, leaving) in leaving.iter_mut().enumerate() {
        if targets.giant_of[worker] != NONE {
            // Either the giant stays and these leave, or the giant leaves.
            *leaving = (*leaving).min(1);
        }
        *leaving = (*leaving).max(kept.forced(ledger, targets, worker));
    }
    let mut flat: u64 = leaving.iter().sum();
    if has_limits {
        flat = flat.max(kept.arriving(&limits, &kept.loads));
    }
    let mut zoned = flat;
    if ledger.zones.len() > 1 && targets.giants.is_empty() {
        let limits = widened(&targets.outer.zones, &ledger.zone_loads);
        let zone = |partition: usize| match owner(partition) {
            NONE => NONE,
            worker => ledger.zones.of[worker as usize],
        };
        let leaving = kept.leaving(&limits, &kept.zone_loads, zone);
        zoned = flat
            .max(leaving.iter().sum())
            .max(kept.arriving(&limits, &kept.zone_loads));
    }
    ((kept.orphans + flat) as u32, (kept.orphans + zoned) as u32)
}

/// Limits that the result is inside.
fn widened(limits: &[Limits], loads: &[u64]) -> Vec<Limits> {
    let widen = |(limits, &load): (&Limits, &u64)| Limits {
        lo: limits.lo.min(load),
        hi: limits.hi.max(load),
    };
    limits.iter().zip(loads).map(widen).collect()
}

fn is_uniform(units: &[u64]) -> bool {
    let mut eligible = units.iter().filter(|&&unit| unit > 0);
    let first = eligible.next();
    eligible.all(|unit| Some(unit) == first)
}

/// What was where before anything moved.
struct Kept<'a> {
    weights: &'a [u64],
    /// Owner of each partition that could stay, or `NONE`.
    owners: Vec<u32>,
    loads: Vec<u64>,
    zone_loads: Vec<u64>,
    counts: Vec<u32>,
    extremes: Vec<u32>,
    orphans: u64,
    new: u64,
    /// Weight of the orphans and the new.
    pool_weight: u64,
    heaviest: u64,
}

impl<'a> Kept<'a> {
    fn new(problem: &Problem<'_>, ledger: &Ledger<'a>, targets: &Targets) -> Self {
        let workers = ledger.slots.len();
        let mut kept = Self {
            weights: ledger.weights,
            owners: problem.previous.to_vec(),
            loads: vec![0; workers],
            zone_loads: vec![0; ledger.zones.len()],
            counts: vec![0; workers],
            extremes: vec![0; workers],
            orphans: 0,
            new: 0,
            pool_weight: 0,
            heaviest: 1,
        };
        for (owner, &weight) in kept.owners.iter_mut().zip(ledger.weights) {
            kept.heaviest = kept.heaviest.max(weight);
            let slot = ledger.slots.get(*owner as usize);
            if slot.is_some_and(Slot::is_eligible) {
                let worker = *owner as usize;
                kept.loads[worker] += weight;
                kept.counts[worker] += 1;
                kept.extremes[worker] += u32::from(targets.is_extreme(weight));
            } else {
                kept.new += u64::from(*owner == NONE);
                kept.orphans += u64::from(*owner != NONE);
                kept.pool_weight += weight;
                *owner = NONE;
            }
        }
        for (worker, &load) in kept.loads.iter().enumerate() {
            kept.zone_loads[ledger.zones.of[worker] as usize] += load;
        }
        kept
    }

    /// How many partitions must leave each bin (worker or zone) to get below its upper limit.
    fn leaving(&self, limits: &[Limits], loads: &[u64], bin_of: impl Fn(usize) -> u32) -> Vec<u64> {
        let mut leaving = vec![0; limits.len()];
        let is_over: Vec<bool> = loads
            .iter()
            .zip(limits)
            .map(|(&load, limits)| load > limits.hi)
            .collect();
        if !is_over.contains(&true) {
            return leaving;
        }
        let mut held: Vec<(u32, u64)> = Vec::new();
        for (partition, &weight) in self.weights.iter().enumerate() {
            let bin = bin_of(partition);
            if bin != NONE && is_over[bin as usize] {
                held.push((bin, weight));
            }
        }
        held.sort_unstable_by_key(|&(_, weight)| Reverse(weight));
        let mut left = loads.to_vec();
        for (bin, weight) in held {
            let bin = bin as usize;
            if left[bin] > limits[bin].hi {
                left[bin] -= weight;
                leaving[bin] += 1;
            }
        }
        leaving
    }

    /// How many partitions must leave a worker for its cap and its share of extremes.
    fn forced(&self, ledger: &Ledger<'_>, targets: &Targets, worker: usize) -> u64 {
        let extremes_most = targets.extreme_limits[worker].max(ledger.extremes[worker]);
        let over_cap = self.counts[worker].saturating_sub(ledger.slots[worker].cap());
        let over_extremes = self.extremes[worker].saturating_sub(extremes_most);
        u64::from(over_cap.max(over_extremes))
    }

    /// How many partitions that could stay must move to lift all bins to their lower limit.
    fn arriving(&self, limits: &[Limits], loads: &[u64]) -> u64 {
        let lacks = || {
            loads
                .iter()
                .zip(limits)
                .map(|(&load, limits)| limits.lo.saturating_sub(load))
        };
        let pieces: u64 = lacks().map(|lack| lack.div_ceil(self.heaviest)).sum();
        let weight = lacks().sum::<u64>().saturating_sub(self.pool_weight);
        let beyond_pool = pieces.saturating_sub(self.orphans + self.new);
        beyond_pool.max(weight.div_ceil(self.heaviest))
    }
}
