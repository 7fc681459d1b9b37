//! Round robin: sorted partitions dealt to sorted workers.

use super::{Strategy, known};
use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::Explanation;
use crate::partition::Partitions;
use crate::worker::Workers;

/// Deals partitions, in the order of their text, to workers in the order of
/// their ids.
///
/// Guarantees counts that differ by at most 1. Does not look at weights, other
/// than giving nothing to a worker of weight 0, and keeps nothing in place:
/// one worker more or less moves most partitions. For even counts without that
/// price take a strategy that knows the previous assignment.
///
/// ```
/// use divvy_core::{Partitions, RoundRobin, Strategy, Workers};
///
/// let workers = Workers::of(["a", "b"])?;
/// let partitions = Partitions::shards([("default", 5)])?;
/// let assignment = RoundRobin.assign(&workers, &partitions, None)?;
/// assert_eq!(assignment.counts(), [3, 2]);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundRobin;

impl Strategy for RoundRobin {
    fn name(&self) -> &str {
        "round-robin"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        let eligible = workers.eligible()?;
        let dealt = eligible.iter().copied().cycle();
        Assignment::new(workers, partitions, dealt.take(partitions.len()).collect())
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        let position = known(partition, partitions)?;
        let eligible = workers.eligible()?;
        let turn = position % eligible.len();
        let all = workers.as_slice();
        let in_turn = eligible[turn..].iter().chain(&eligible[..turn]);
        let candidates = in_turn
            .map(|&index| &all[index as usize])
            .chain(all.iter().filter(|worker| !worker.is_eligible()))
            .map(|worker| (worker, None, None));
        let method = format!(
            "Round robin deals the sorted partitions in turn: number {position} of {}, and \
             {position} mod {} workers is {turn}.",
            partitions.len(),
            eligible.len(),
        );
        Ok(Explanation::ranked(partition, method, candidates))
    }
}
