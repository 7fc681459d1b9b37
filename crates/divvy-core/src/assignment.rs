//! Who owns what: the result of a strategy.

mod balance;
mod document;
mod moves;

pub use balance::Balance;
pub use document::{ASSIGNMENT_FORMAT, AssignmentDocument, WorkerLoad};
pub use moves::{Move, Moves};

use crate::error::{Error, Invalid};
use crate::partition::{Partition, Partitions};
use crate::worker::{Worker, Workers};

/// Every partition's owner.
///
/// Total by construction: each partition of the set has exactly one owner, and
/// that owner is one of the workers. Inside it is one `u32` per partition;
/// names are only looked up at the edges.
///
/// ```
/// use divvy_core::{Partitions, Rendezvous, Strategy, Workers};
///
/// let workers = Workers::of(["a", "b", "c"])?;
/// let partitions = Partitions::shards([("default", 12)])?;
/// let before = Rendezvous::new().assign(&workers, &partitions, None)?;
/// let after = Rendezvous::new().assign(&Workers::of(["a", "b"])?, &partitions, Some(&before))?;
///
/// let moves = after.moves_from(&before);
/// assert!(moves.iter().all(|change| change.from.as_deref() == Some("c")));
/// assert_eq!(before.partitions_of("c").unwrap().count(), moves.len());
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    workers: Workers,
    partitions: Partitions,
    /// By index of the partition, the index of its owner in `workers`.
    owners: Vec<u32>,
}

impl Assignment {
    /// The assignment that gives the partition with index `i` to the worker
    /// with index `owners[i]`, indices counting in the order of the sets.
    ///
    /// An owner for each partition and each owner among the workers, or it is
    /// an error.
    pub fn new(
        workers: &Workers,
        partitions: &Partitions,
        owners: Vec<u32>,
    ) -> Result<Self, Error> {
        if owners.len() != partitions.len() {
            let rule = format!("must be {}, one for each partition", partitions.len());
            return Err(Invalid::new("number of owners", owners.len(), rule).into());
        }
        if let Some(&stranger) = owners
            .iter()
            .find(|&&owner| owner as usize >= workers.len())
        {
            let rule = format!("must be below {}, the number of workers", workers.len());
            return Err(Invalid::new("owner index", stranger, rule).into());
        }
        Ok(Self {
            workers: workers.clone(),
            partitions: partitions.clone(),
            owners,
        })
    }

    /// The assignment that a function of the partition gives, by worker id.
    /// The short way for a strategy of one's own.
    pub fn by_id<'a>(
        workers: &Workers,
        partitions: &'a Partitions,
        mut owner_of: impl FnMut(&'a Partition) -> &'a str,
    ) -> Result<Self, Error> {
        let owners: Result<Vec<u32>, Error> = partitions
            .iter()
            .map(|partition| {
                let id = owner_of(partition);
                let index = workers.index_of(id).ok_or_else(|| {
                    Invalid::new(
                        "owner",
                        id,
                        format!("of {partition} is not among the workers"),
                    )
                })?;
                Ok(index as u32)
            })
            .collect();
        Self::new(workers, partitions, owners?)
    }

    /// The workers, those without partitions included.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// The partitions.
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// By index of the partition, the index of its owner.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// The owner of the partition with this text form, or `None` where there
    /// is no such partition.
    pub fn owner_of(&self, partition: &str) -> Option<&Worker> {
        let index = self.partitions.index_of(partition)?;
        Some(&self.workers.as_slice()[self.owners[index] as usize])
    }

    /// The partitions of the worker with this id in the order of their text,
    /// or `None` where there is no such worker. Looks at every partition: to
    /// go through all workers take [`Assignment::by_worker`].
    pub fn partitions_of(&self, worker: &str) -> Option<impl Iterator<Item = &Partition>> {
        let wanted = self.workers.index_of(worker)? as u32;
        let owned = self.partitions.iter().zip(&self.owners);
        Some(owned.filter_map(move |(partition, &owner)| (owner == wanted).then_some(partition)))
    }

    /// Every worker with its partitions, both in the order of their names.
    pub fn by_worker(&self) -> Vec<(&Worker, Vec<&Partition>)> {
        let mut grouped: Vec<(&Worker, Vec<&Partition>)> = self
            .workers
            .iter()
            .zip(self.counts())
            .map(|(worker, count)| (worker, Vec::with_capacity(count)))
            .collect();
        for (partition, &owner) in self.partitions.iter().zip(&self.owners) {
            grouped[owner as usize].1.push(partition);
        }
        grouped
    }

    /// By index of the worker, how many partitions it has.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.workers.len()];
        for &owner in &self.owners {
            counts[owner as usize] += 1;
        }
        counts
    }

    /// By index of the worker, the sum of its partitions' loads.
    pub fn loads(&self) -> Vec<u64> {
        let mut loads = vec![0; self.workers.len()];
        for (load, &owner) in self.partitions.loads().zip(&self.owners) {
            loads[owner as usize] += load;
        }
        loads
    }

    /// How even the loads are.
    pub fn balance(&self) -> Balance {
        Balance::new(&self.workers, &self.loads())
    }

    /// What has to move to get here from `previous`: see [`Moves`].
    pub fn moves_from(&self, previous: &Self) -> Moves {
        Moves::between(previous, self)
    }

    /// The share of the partitions that both assignments know and that kept
    /// their owner: 1 where nothing moved, 0 where everything did.
    pub fn affinity(&self, previous: &Self) -> f64 {
        self.moves_from(previous).affinity()
    }
}
