//! A strategy whose work is measured.

use std::sync::Arc;
use std::time::Instant;

use divvy_core::{Assignment, Error, Explanation, Partitions, Proposal, Strategy, Workers};

use super::status::Status;

/// Another strategy, and how long it takes.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) strategy: Arc<dyn Strategy>,
    pub(super) status: Arc<Status>,
}

impl Measured {
    fn note(&self, begun: Instant, placed: &Assignment, previous: Option<&Assignment>) {
        let affinity = previous.map(|previous| placed.affinity(previous));
        self.status.metrics.calculated(begun.elapsed(), affinity);
    }
}

impl Strategy for Measured {
    fn name(&self) -> &str {
        self.strategy.name()
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        let begun = Instant::now();
        let placed = self.strategy.assign(workers, partitions, previous)?;
        self.note(begun, &placed, previous);
        Ok(placed)
    }

    fn propose(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Proposal, Error> {
        let begun = Instant::now();
        let proposal = self.strategy.propose(workers, partitions, previous)?;
        self.note(begun, &proposal.assignment, previous);
        Ok(proposal)
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        self.strategy
            .explain(partition, workers, partitions, previous)
    }
}
