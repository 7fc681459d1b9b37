//! Consistent hashing on a ring of virtual nodes.

use super::{Ring, Strategy, known};
use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::Explanation;
use crate::partition::Partitions;
use crate::worker::Workers;

/// Points on the ring per unit of a worker's weight unless others are chosen.
pub const VIRTUAL_NODES_DEFAULT: u32 = 150;
/// Most points on the ring per unit of weight.
pub const VIRTUAL_NODES_MAX: u32 = 10_000;

/// Places each partition on the first worker that follows it on a [`Ring`].
///
/// Guarantees that a departed worker moves only its own partitions and that a
/// new one only gains. Does not look at partition weights, and is not even: a
/// worker's share has a standard deviation of about `1 / sqrt(virtual_nodes)`
/// of itself, 8 % at 150, and one of so little weight that it has a single point
/// more than that. [`Rendezvous`](super::Rendezvous) is more even; the
/// ring is for lookups of single keys among many workers.
///
/// ```
/// use divvy_core::{ConsistentHash, Partitions, Strategy, Workers};
///
/// let strategy = ConsistentHash::new().with_virtual_nodes(200).with_seed(7);
/// let partitions = Partitions::shards([("default", 1000)])?;
/// let two = strategy.assign(&Workers::of(["a", "b"])?, &partitions, None)?;
/// let three = strategy.assign(&Workers::of(["a", "b", "c"])?, &partitions, None)?;
/// for change in &three.moves_from(&two) {
///     assert_eq!(change.to.as_deref(), Some("c"));
/// }
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsistentHash {
    virtual_nodes: u32,
    seed: u64,
}

impl ConsistentHash {
    /// [`VIRTUAL_NODES_DEFAULT`] virtual nodes, seed 0.
    pub fn new() -> Self {
        Self {
            virtual_nodes: VIRTUAL_NODES_DEFAULT,
            seed: 0,
        }
    }

    /// The same with another number of virtual nodes per unit of weight: more
    /// are more even and cost 8 bytes each. A number outside of
    /// 1..=[`VIRTUAL_NODES_MAX`] is corrected to the nearer bound, and one
    /// warning is logged.
    pub fn with_virtual_nodes(self, virtual_nodes: u32) -> Self {
        let used = virtual_nodes.clamp(1, VIRTUAL_NODES_MAX);
        if used != virtual_nodes {
            tracing::warn!(
                given = virtual_nodes,
                used,
                "virtual nodes {virtual_nodes} are outside of 1..={VIRTUAL_NODES_MAX}, using {used}"
            );
        }
        Self {
            virtual_nodes: used,
            ..self
        }
    }

    /// The same with another seed, which gives an independent placement. All
    /// members of a cluster need the same.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The ring that it places on.
    pub fn ring(&self, workers: &Workers) -> Result<Ring, Error> {
        Ring::new(workers, self.virtual_nodes, self.seed)
    }
}

impl Default for ConsistentHash {
    fn default() -> Self {
        Self::new()
    }
}

impl Strategy for ConsistentHash {
    fn name(&self) -> &str {
        "consistent-hash"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        let ring = self.ring(workers)?;
        let owners = partitions.iter().map(|p| ring.owner_of(p.as_str()));
        Assignment::new(workers, partitions, owners.collect())
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        known(partition, partitions)?;
        workers.eligible()?;
        // Whoever is unhealthy has no points in use; on the ring here, it is
        // seen where it would have come.
        let ring = Ring::with(workers, self.virtual_nodes, self.seed, |worker| {
            worker.weight() > 0.0
        })?;
        let start = ring.position_of(partition);
        let mut met = vec![false; workers.len()];
        let mut candidates = Vec::with_capacity(workers.len());
        for (position, index) in ring.walk(start) {
            if std::mem::replace(&mut met[index as usize], true) {
                continue;
            }
            let distance = f64::from(position.wrapping_sub(start)) / 2f64.powi(32);
            let hash = Some(format!("{position:08x}"));
            candidates.push((
                &workers.as_slice()[index as usize],
                hash,
                Some(1.0 - distance),
            ));
        }
        let absent = workers.iter().zip(&met).filter(|(_, met)| !**met);
        candidates.extend(absent.map(|(worker, _)| (worker, None, None)));
        let method = format!(
            "The partition is at {start:08x} on a ring of {} points; the first point at or after \
             it owns it. Hash is each worker's nearest point, score 1 - the way to it.",
            ring.len(),
        );
        Ok(Explanation::ranked(partition, method, candidates))
    }
}
