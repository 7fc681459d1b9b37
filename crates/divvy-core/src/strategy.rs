//! Strategies: pure functions from workers and partitions to an assignment.

mod balanced;
mod consistent_hash;
mod options;
mod planned;
pub(crate) mod rendezvous;
mod ring;
mod round_robin;
mod settings;
mod weighted_consistent_hash;
mod zoned;

pub use balanced::Balanced;
pub use consistent_hash::{ConsistentHash, VIRTUAL_NODES_DEFAULT, VIRTUAL_NODES_MAX};
pub use options::StrategyOptions;
pub use rendezvous::{CRUSTER_WEIGHT_MAX, FilteredRendezvous, LiveRendezvous, Rendezvous, Scheme};
pub use ring::{RING_POINTS_MAX, Ring};
pub use round_robin::RoundRobin;
pub use settings::{SchemeName, StrategyName, StrategySettings};
pub use weighted_consistent_hash::{
    EXTREME_THRESHOLD_DEFAULT, EXTREME_THRESHOLD_MAX, EXTREME_THRESHOLD_MIN,
    OVERLOAD_THRESHOLD_DEFAULT, OVERLOAD_THRESHOLD_MAX, OVERLOAD_THRESHOLD_MIN,
    WeightedConsistentHash,
};
pub use zoned::Zoned;

use std::fmt;

use crate::assignment::Assignment;
use crate::error::{Error, Invalid};
use crate::explain::Explanation;
use crate::partition::Partitions;
use crate::proposal::Proposal;
use crate::worker::Workers;

/// Decides who owns what.
///
/// An implementation is a pure function of its arguments: same input, same
/// output, on every platform and in every process, or members of one cluster
/// would disagree. The sets are sorted by name, so the order in which workers
/// and partitions were discovered cannot matter.
///
/// ```
/// use divvy_core::{Assignment, Error, Partitions, Strategy, Workers};
///
/// /// Everything to the first worker that may own partitions.
/// #[derive(Debug)]
/// struct FirstTakesAll;
///
/// impl Strategy for FirstTakesAll {
///     fn name(&self) -> &str {
///         "first-takes-all"
///     }
///
///     fn assign(
///         &self,
///         workers: &Workers,
///         partitions: &Partitions,
///         _previous: Option<&Assignment>,
///     ) -> Result<Assignment, Error> {
///         let first = workers.eligible()?[0];
///         Assignment::new(workers, partitions, vec![first; partitions.len()])
///     }
/// }
///
/// let partitions = Partitions::shards([("default", 4)])?;
/// let assignment = FirstTakesAll.assign(&Workers::of(["b", "a"])?, &partitions, None)?;
/// assert_eq!(assignment.partitions_of("a").unwrap().count(), 4);
/// assert_eq!(assignment.partitions_of("b").unwrap().count(), 0);
/// # Ok::<(), Error>(())
/// ```
pub trait Strategy: fmt::Debug + Send + Sync {
    /// The name by which settings and documents know it.
    fn name(&self) -> &str;

    /// Gives every partition an owner that is healthy and has a weight above
    /// 0. Without such a worker it is [`Error::NoWorkers`], partitions or not.
    ///
    /// `previous` is the assignment in force. Strategies that place by hash
    /// alone ignore it.
    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error>;

    /// The same assignment with the account of how it came about: every change
    /// from `previous` with its cause, and how good it is. Unless implemented,
    /// the account is made from the outcome.
    fn propose(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Proposal, Error> {
        Proposal::of(self.assign(workers, partitions, previous)?, previous)
    }

    /// Why the partition with this text form is where
    /// [`Strategy::assign`] puts it. Unless implemented, it names the owner
    /// and no ranking.
    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        known(partition, partitions)?;
        let assignment = self.assign(workers, partitions, previous)?;
        let owner = assignment
            .owner_of(partition)
            .expect("assignments are total");
        Ok(Explanation {
            partition: partition.to_owned(),
            owner: owner.id().to_owned(),
            why: None,
            method: format!("The strategy {} does not rank workers.", self.name()),
            loads: None,
            ranking: Vec::new(),
        })
    }
}

/// The index of a partition that somebody asks about.
fn known(partition: &str, partitions: &Partitions) -> Result<usize, Error> {
    partitions.index_of(partition).ok_or_else(|| {
        let rule = format!("is not among the {} partitions", partitions.len());
        Invalid::new("partition", partition, rule).into()
    })
}
