//! How even an assignment is.

use serde::Serialize;

use crate::worker::{Worker, Workers};

/// The spread of loads over the workers that may own partitions.
///
/// A load counts in relation to its worker's weight, so an assignment that
/// gives a worker of weight 3 three times the load of one of weight 1 is even.
/// The mean is all load divided by all weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Balance {
    /// The heaviest worker's load in relation to the mean; 1 is even.
    pub max_over_mean: f64,
    /// The lightest worker's load in relation to the mean; 1 is even.
    pub min_over_mean: f64,
    /// The standard deviation of the loads in relation to the mean; 0 is even.
    pub stddev_over_mean: f64,
}

impl Balance {
    /// The balance of `loads`, one per worker. Without any load it is even.
    pub(crate) fn new(workers: &Workers, loads: &[u64]) -> Self {
        let even = Self {
            max_over_mean: 1.0,
            min_over_mean: 1.0,
            stddev_over_mean: 0.0,
        };
        let eligible = || {
            workers
                .iter()
                .zip(loads)
                .filter(|(worker, _)| worker.is_eligible())
        };
        let weight: f64 = eligible().map(|(worker, _)| worker.weight()).sum();
        let load: f64 = eligible().map(|(_, &load)| load as f64).sum();
        if load == 0.0 || weight == 0.0 {
            return even;
        }
        let mean = load / weight;
        let relative = |(worker, &load): (&Worker, &u64)| load as f64 / worker.weight() / mean;
        let max_over_mean = eligible().map(relative).fold(0.0, f64::max);
        let min_over_mean = eligible().map(relative).fold(f64::INFINITY, f64::min);
        let variance = eligible()
            .map(|pair| (relative(pair) - 1.0) * (relative(pair) - 1.0))
            .sum::<f64>()
            / eligible().count() as f64;
        Self {
            max_over_mean,
            min_over_mean,
            stddev_over_mean: variance.sqrt(),
        }
    }
}
