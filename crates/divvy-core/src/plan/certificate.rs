//! How good a plan is and how good it could have been, in numbers anyone can compute again.

use serde::Serialize;

use super::outcome::Move;
use super::problem::{GONE, NONE, Problem};

/// The account of one plan.
///
/// A *level* is a worker's load divided by its weight; the mean is the total weight of the partitions divided
/// by the total weight of the workers that may own something. Only those workers are counted anywhere here.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Certificate {
    /// Highest level over the mean; 1 if there are no partitions.
    pub max_over_mean: f64,
    /// Lowest level over the mean; 1 if there are no partitions.
    pub min_over_mean: f64,
    /// Most partitions on one worker.
    pub max_count: u32,
    /// Fewest partitions on one worker.
    pub min_count: u32,
    /// Partitions that had an owner and have another one now, orphans included.
    pub moves: u32,
    /// The weight of those.
    pub moved_weight: u64,
    /// Partitions whose owner left or may own nothing: they move whatever the plan.
    pub orphans: u32,
    /// Partitions without an owner before; they are placed, not moved.
    pub new: u32,
    /// No assignment in which every worker is as well off has fewer moves. Exact when planning by count; from weights
    /// it is a bound that may be out of reach. A worker this plan leaves outside the band may be as far
    /// outside in what is compared.
    pub lower_bound: u32,
    /// The same bound without zones; the difference is what zones force. Equals `lower_bound` where there are
    /// none.
    pub flat_bound: u32,
    /// Workers outside the band. Always 0 when planning by count.
    pub outside: u32,
    /// Zones outside their band. Always 0 when planning by count.
    pub zones_outside: u32,
    /// Partitions too heavy for the band of any worker. Each has a worker of its own, and the band is around
    /// what the others average (the target is water-filled).
    pub giants: u32,
    /// What the band is around, over the mean: 1 without giants, less with them.
    pub target_over_mean: f64,
    /// Partitions heavier than the extreme threshold. 0 when planning by count.
    pub extremes: u32,
    /// Most of those on one worker.
    pub extremes_max: u32,
    /// How many of those a worker of average weight may own: ⌈E / W⌉ + 1.
    pub extremes_limit: u32,
}

impl Certificate {
    /// Measures what any plan has: spread and moves. The rest is the planner's to add.
    pub(super) fn measure(
        problem: &Problem<'_>,
        loads: &[u64],
        counts: &[u32],
        moves: &[Move],
    ) -> Self {
        let mut certificate = Self {
            max_over_mean: 1.0,
            min_over_mean: 1.0,
            max_count: 0,
            min_count: u32::MAX,
            moves: 0,
            moved_weight: 0,
            orphans: 0,
            new: 0,
            lower_bound: 0,
            flat_bound: 0,
            outside: 0,
            zones_outside: 0,
            giants: 0,
            target_over_mean: 1.0,
            extremes: 0,
            extremes_max: 0,
            extremes_limit: 0,
        };
        certificate.measure_spread(problem, loads, counts);
        for change in moves {
            let is_orphan = match change.from {
                NONE => {
                    certificate.new += 1;
                    continue;
                }
                GONE => true,
                from => !problem.slots[from as usize].is_eligible(),
            };
            certificate.moves += 1;
            certificate.moved_weight += problem.weights.of(change.partition as usize);
            certificate.orphans += u32::from(is_orphan);
        }
        certificate
    }

    fn measure_spread(&mut self, problem: &Problem<'_>, loads: &[u64], counts: &[u32]) {
        let eligible = || (0..loads.len()).filter(|&worker| problem.slots[worker].is_eligible());
        for worker in eligible() {
            self.max_count = self.max_count.max(counts[worker]);
            self.min_count = self.min_count.min(counts[worker]);
        }
        let total: u64 = loads.iter().sum();
        if total == 0 {
            return;
        }
        let capacity: f64 = eligible().map(|worker| problem.slots[worker].weight).sum();
        let mean = total as f64 / capacity;
        (self.max_over_mean, self.min_over_mean) = (0.0, f64::INFINITY);
        for worker in eligible() {
            let ratio = loads[worker] as f64 / problem.slots[worker].weight / mean;
            self.max_over_mean = self.max_over_mean.max(ratio);
            self.min_over_mean = self.min_over_mean.min(ratio);
        }
    }
}
