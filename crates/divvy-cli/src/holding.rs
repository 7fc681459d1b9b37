//! What a worker has, in relation to what would be its share.

use divvy::{Assignment, Worker};

/// A worker with what it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holding<'a> {
    pub(crate) worker: &'a Worker,
    /// How many partitions it has.
    pub(crate) partitions: usize,
    /// The sum of their loads.
    pub(crate) load: u64,
    /// What load would be even, by the worker's weight; 0 for who gets
    /// nothing.
    pub(crate) fair: f64,
}

impl<'a> Holding<'a> {
    /// Of all workers, in the order of the set.
    pub(crate) fn all(assignment: &'a Assignment) -> Vec<Self> {
        let loads = assignment.loads();
        let total: f64 = loads.iter().map(|&load| load as f64).sum();
        let per_weight = total / assignment.workers().iter().map(weight).sum::<f64>();
        let owned = assignment.counts().into_iter().zip(loads);
        let holding = |(worker, (partitions, load))| Self {
            worker,
            partitions,
            load,
            fair: match weight(worker) {
                0.0 => 0.0,
                weight => per_weight * weight,
            },
        };
        assignment
            .workers()
            .iter()
            .zip(owned)
            .map(holding)
            .collect()
    }

    /// The load in relation to the share.
    pub(crate) fn ratio(&self) -> f64 {
        match self.load {
            0 => 0.0,
            load => load as f64 / self.fair,
        }
    }
}

fn weight(worker: &Worker) -> f64 {
    let eligible = worker.is_eligible();
    if eligible { worker.weight() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use divvy::{Partitions, Workers};

    use super::*;

    #[test]
    fn shares_are_by_weight_and_nobody_divides_by_nothing() {
        let workers = [("a", 3.0), ("b", 1.0), ("c", 0.0)];
        let workers = workers.map(|(id, weight)| {
            let worker = Worker::new(id).and_then(|worker| worker.with_weight(weight));
            worker.expect("a worker")
        });
        let workers = Workers::new(workers).expect("workers");
        let partitions = Partitions::shards([("p", 4)]).expect("partitions");
        let assignment =
            Assignment::new(&workers, &partitions, vec![0, 0, 0, 0]).expect("owners for all");
        let all = Holding::all(&assignment);
        let fair: Vec<f64> = all.iter().map(|holding| holding.fair).collect();
        assert_eq!(fair, [3.0, 1.0, 0.0]);
        let ratios: Vec<f64> = all.iter().map(Holding::ratio).collect();
        assert_eq!(ratios, [4.0 / 3.0, 0.0, 0.0]);
    }
}
