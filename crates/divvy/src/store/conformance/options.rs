//! How thorough a run is.

use std::time::Duration;

/// How thorough a run of the suite is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What the random choices of a run follow from. Names are drawn anew each
    /// time nevertheless.
    pub seed: u64,
    /// How many random operations the longest cases do; the others scale with
    /// it.
    pub operations: usize,
    /// How long anything may take: an operation, a read to become fresh, a
    /// notice to arrive.
    pub wait: Duration,
    /// How early a lease may be free, measured from before it was asked for.
    /// Clocks that count in milliseconds need a little.
    pub early: Duration,
    /// How late what has expired may still be there.
    pub late: Duration,
}

impl Options {
    /// The default with this seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            operations: 400,
            wait: Duration::from_secs(5),
            early: Duration::from_millis(10),
            late: Duration::from_secs(1),
        }
    }
}
