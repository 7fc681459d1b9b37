//! Zones first, then the workers of a zone.

use super::planned::{error_of, explain, rendezvous_preference};
use super::weighted_consistent_hash::Thresholds;
use super::{Rendezvous, Scheme, Strategy, known};
use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::Explanation;
use crate::partition::Partitions;
use crate::plan::{self, Decision};
use crate::proposal::{Interned, Proposal};
use crate::worker::Workers;

/// Spreads partitions over zones by the weight of their workers, then over the
/// workers of a zone, and moves no more than that takes.
///
/// Where all partitions weigh the same, counts are exact: a zone owns its
/// share rounded down or up, and so does each worker of what its zone owns,
/// with the fewest moves there are. Otherwise a zone is held inside a third of
/// the band and a worker inside the band, as
/// [`WeightedConsistentHash`](super::WeightedConsistentHash) has it. Workers
/// without a zone are a zone of their own.
///
/// Guarantees what it says by count; the certificate's `flat_bound` is the
/// number of moves that would do without zones, so the difference to
/// `lower_bound` is what zones cost. Does not keep copies of a partition in
/// different zones: there are no copies.
///
/// ```
/// use divvy_core::{Partitions, Strategy, Worker, Workers, Zoned};
///
/// let worker = |id: &str, zone: &str| Worker::new(id)?.with_zone(zone);
/// let workers = Workers::new([worker("a", "east")?, worker("b", "east")?, worker("c", "west")?])?;
/// let partitions = Partitions::shards([("default", 90)])?;
/// let assignment = Zoned::new().assign(&workers, &partitions, None)?;
/// assert_eq!(assignment.counts(), [30, 30, 30]);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Zoned {
    seed: u64,
    thresholds: Thresholds,
}

impl Zoned {
    /// Seed 0, and the thresholds of
    /// [`WeightedConsistentHash`](super::WeightedConsistentHash).
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another seed of the hash that it prefers by.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(super) fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// As
    /// [`WeightedConsistentHash::with_overload_threshold`](super::WeightedConsistentHash::with_overload_threshold).
    pub fn with_overload_threshold(mut self, threshold: f64) -> Self {
        self.thresholds.set_overload(threshold);
        self
    }

    /// As
    /// [`WeightedConsistentHash::with_extreme_threshold`](super::WeightedConsistentHash::with_extreme_threshold).
    pub fn with_extreme_threshold(mut self, threshold: f64) -> Self {
        self.thresholds.set_extreme(threshold);
        self
    }

    /// As
    /// [`WeightedConsistentHash::with_default_weight`](super::WeightedConsistentHash::with_default_weight).
    pub fn with_default_weight(mut self, weight: i64) -> Self {
        self.thresholds.set_default_weight(weight);
        self
    }
}

impl Strategy for Zoned {
    fn name(&self) -> &str {
        "zoned"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        Ok(self.propose(workers, partitions, previous)?.assignment)
    }

    fn propose(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Proposal, Error> {
        workers.eligible()?;
        let partitions = &partitions.with_default_weight(self.thresholds.default_weight())?;
        let interned = Interned::new(workers, partitions, previous);
        let preferred = rendezvous_preference(workers, partitions, &interned, self.seed)?;
        let plan = if interned.is_even {
            plan::zoned(&interned.problem(), preferred)
        } else {
            plan::zoned_banded(&interned.problem(), &self.thresholds.band(), preferred)
        };
        let plan = plan.map_err(|error| error_of(error, workers))?;
        interned.proposal(workers, partitions, previous, plan)
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        let scheme = Scheme::Native { seed: self.seed };
        let hashed = Rendezvous::new().with_scheme(scheme);
        let hashed = hashed.explain(partition, workers, partitions, previous)?;
        let partitions = &partitions.with_default_weight(self.thresholds.default_weight())?;
        let at = known(partition, partitions)? as u32;
        let interned = Interned::new(workers, partitions, previous);
        let preferred = rendezvous_preference(workers, partitions, &interned, self.seed)?;
        let problem = interned.problem();
        let planned = if interned.is_even {
            plan::zoned(&problem, preferred).map(|plan| {
                let decision = Decision::by_count(&problem, &plan, at);
                (plan, decision)
            })
        } else {
            plan::banded_decision(&problem, &self.thresholds.band(), true, preferred, at)
        };
        let (plan, decision) = planned.map_err(|error| error_of(error, workers))?;
        let proposal = interned.proposal(workers, partitions, previous, plan)?;
        let method = "Ranked by rendezvous hashing; zones get their share first, a worker that \
                      has its share gets no more, and what may stay is not moved.";
        Ok(explain(hashed, &proposal, &decision, method))
    }
}
