//! Even counts with the fewest moves.

use super::planned::{error_of, explain, rendezvous_preference};
use super::{Rendezvous, Scheme, Strategy, known};
use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::Explanation;
use crate::partition::Partitions;
use crate::plan::{self, Decision, Plan};
use crate::proposal::{Interned, Proposal};
use crate::worker::Workers;

/// Gives every worker its exact share of the partitions by count, and from a
/// previous assignment moves as few as possible.
///
/// A worker's share is in proportion to its weight and limited by its
/// [`max_partitions`](crate::Worker::max_partitions); it owns that share
/// rounded down or up. What has to be placed goes to the worker that
/// rendezvous hashing prefers, while that one has room, and otherwise to the
/// lightest.
///
/// Guarantees counts that differ by at most 1 among equal workers, exactly the
/// minimum number of moves to such counts, and that planning again moves
/// nothing. Does not look at partition weights: for those take
/// [`WeightedConsistentHash`](super::WeightedConsistentHash). What has to be
/// placed costs a rendezvous each, so a cold start among very many workers is
/// as expensive as [`Rendezvous`].
///
/// ```
/// use divvy_core::{Balanced, Partitions, Strategy, Workers};
///
/// let partitions = Partitions::shards([("default", 100)])?;
/// let before = Balanced::new().assign(&Workers::of(["a", "b", "c"])?, &partitions, None)?;
/// assert_eq!(before.counts(), [34, 33, 33]);
/// let two = Workers::of(["a", "b"])?;
/// let after = Balanced::new().assign(&two, &partitions, Some(&before))?;
/// assert_eq!(after.counts(), [50, 50]);
/// assert_eq!(after.moves_from(&before).moved(), 33);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balanced {
    seed: u64,
}

impl Balanced {
    /// Seed 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another seed of the hash that it prefers by.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed }
    }

    fn plan(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        interned: &Interned,
    ) -> Result<Plan, Error> {
        let preferred = rendezvous_preference(workers, partitions, interned, self.seed)?;
        plan::balanced(&interned.problem(), preferred).map_err(|error| error_of(error, workers))
    }
}

impl Strategy for Balanced {
    fn name(&self) -> &str {
        "balanced"
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
        let interned = Interned::new(workers, partitions, previous);
        let plan = self.plan(workers, partitions, &interned)?;
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
        let at = known(partition, partitions)? as u32;
        let interned = Interned::new(workers, partitions, previous);
        let plan = self.plan(workers, partitions, &interned)?;
        let decision = Decision::by_count(&interned.problem(), &plan, at);
        let proposal = interned.proposal(workers, partitions, previous, plan)?;
        let method = "Ranked by rendezvous hashing; a worker that owns its share gets no more, \
                      and what may stay is not moved.";
        Ok(explain(hashed, &proposal, &decision, method))
    }
}
