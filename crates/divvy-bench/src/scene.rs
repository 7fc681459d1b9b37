//! What is placed: the same names for divvy and for its peers.

use std::hash::{Hash, Hasher};

use divvy_core::{Partition, Partitions, Worker, Workers};

/// Partitions and workers in divvy's sets, and the same names for the peers.
#[derive(Debug)]
pub(crate) struct Scene {
    /// For divvy.
    pub(crate) partitions: Partitions,
    /// For divvy.
    pub(crate) workers: Workers,
    /// The partitions' text, in the order of the set.
    pub(crate) keys: Vec<String>,
    /// The workers' ids, in the order of the set.
    pub(crate) names: Vec<String>,
    /// The workers' weights, in the order of the set.
    pub(crate) weights: Vec<u32>,
}

impl Scene {
    /// `default:0` and so on, on `runner-0:9000` and so on, all of weight 1.
    pub(crate) fn equal(partitions: usize, workers: usize) -> Self {
        Self::weighted(partitions, workers, |_| 1)
    }

    /// The same with the weight that a function of the worker's number gives.
    pub(crate) fn weighted(
        partitions: usize,
        workers: usize,
        weight: impl Fn(usize) -> u32,
    ) -> Self {
        let worker =
            |number: usize| Worker::new(name(number))?.with_weight(f64::from(weight(number)));
        let workers: Result<Vec<_>, _> = (0..workers).map(worker).collect();
        let workers = Workers::new(workers.expect("valid names and weights"))
            .expect("names are distinct and few enough");
        let partitions = shards(partitions);
        Self {
            keys: partitions.iter().map(|p| p.as_str().to_owned()).collect(),
            names: workers.iter().map(|w| w.id().to_owned()).collect(),
            weights: workers.iter().map(|w| w.weight() as u32).collect(),
            partitions,
            workers,
        }
    }

    /// The workers as peers are given them.
    pub(crate) fn nodes(&self) -> Vec<Node<'_>> {
        let workers = self.names.iter().zip(&self.weights).zip(0..);
        workers
            .map(|((name, &weight), index)| Node {
                name,
                index,
                weight,
            })
            .collect()
    }
}

/// A worker's id. `host:port`, because that is what the `cruster` scheme needs.
pub(crate) fn name(number: usize) -> String {
    format!("runner-{number}:9000")
}

/// The shards `default:0` and so on.
pub(crate) fn shards(count: usize) -> Partitions {
    let count = u32::try_from(count).expect("fewer partitions than 2^32");
    Partitions::shards([("default", count)]).expect("few enough partitions")
}

/// The same with a weight for each.
pub(crate) fn weighted_shards(weights: &[u64]) -> Partitions {
    let partition = |(number, &weight): (u32, &u64)| {
        let weight = i64::try_from(weight).expect("weights are small");
        Partition::shard("default", number)?.with_weight(weight)
    };
    let partitions: Result<Vec<_>, _> = (0..).zip(weights).map(partition).collect();
    Partitions::new(partitions.expect("valid partitions")).expect("few enough partitions")
}

/// A worker as a peer is given it. Hashed, compared and ordered by its name alone, so that the peer does
/// the work that it would do for a name; the index comes with it and spares a search afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    /// Its id.
    pub(crate) name: &'a str,
    /// Its index among all workers.
    pub(crate) index: u32,
    /// Its weight.
    pub(crate) weight: u32,
}

impl Hash for Node<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Node<'_> {}

impl PartialOrd for Node<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name.cmp(other.name)
    }
}
