//! Trying again: after how long, and when failure has to be told.

use std::time::Duration;

/// How a member repeats what the store did not do: claims of an id, and
/// publications of an assignment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retries {
    /// After so many of them failure is told; it is tried on.
    pub max: u32,
    /// The longest wait before the first.
    pub first: Duration,
    /// The longest wait of all.
    pub longest: Duration,
    /// By what the longest wait grows each time.
    pub growth: f64,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            max: 3,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            growth: 2.0,
        }
    }
}

impl Retries {
    /// The longest wait before retry `number`, which counts from 0.
    pub fn ceiling(&self, number: u32) -> Duration {
        let growth = self.growth.powi(i32::try_from(number).unwrap_or(i32::MAX));
        let ceiling = self.first.as_secs_f64() * growth;
        let ceiling = ceiling.min(self.longest.as_secs_f64());
        Duration::try_from_secs_f64(ceiling).unwrap_or(self.longest)
    }
}
