//! Trying again: how often, and how long to wait between.

use std::time::Duration;

use divvy_core::Invalid;
use divvy_core::leader::TIMING_MAX;

/// Most retries.
const RETRIES_MAX: u32 = 100;
/// Steepest growth of delays.
const BACKOFF_MAX: f64 = 10.0;

/// How failed calls of the source of partitions, and the opening of a store that
/// is not reached, are repeated. Delays grow from
/// `initial_delay` by `backoff` up to `max_delay`, and each is drawn between
/// nothing and that, so that many do not come back together. What the protocol
/// itself repeats (claims, renewals, roots, watches, elections) has its own
/// timing, which follows from the lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// How often to try again before giving up, at most 100.
    pub max_retries: u32,
    /// The ceiling of the first delay.
    pub initial_delay: Duration,
    /// The ceiling of all delays, at least the first.
    pub max_delay: Duration,
    /// By what the ceiling grows each time, 1 to 10.
    pub backoff: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            backoff: 2.0,
        }
    }
}

impl Retry {
    /// Whether every field keeps its bounds.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.max_retries > RETRIES_MAX {
            let rule = format!("must be at most {RETRIES_MAX}");
            return Err(Invalid::new("max_retries", self.max_retries, rule));
        }
        if !(1.0..=BACKOFF_MAX).contains(&self.backoff) {
            let rule = format!("must be in 1..={BACKOFF_MAX}");
            return Err(Invalid::new("backoff", self.backoff, rule));
        }
        if self.max_delay > TIMING_MAX {
            let rule = format!("must be at most {TIMING_MAX:?}");
            return Err(Invalid::new(
                "max_delay",
                format!("{:?}", self.max_delay),
                rule,
            ));
        }
        if self.max_delay < self.initial_delay {
            let rule = format!("must be at least initial_delay, {:?}", self.initial_delay);
            let value = format!("{:?}", self.max_delay);
            return Err(Invalid::new("max_delay", value, rule));
        }
        Ok(())
    }

    /// How long to wait before retry `number`, which counts from 0.
    pub(crate) fn delay(&self, number: u32) -> Duration {
        self.ceiling(number).mul_f64(fastrand::f64())
    }

    fn ceiling(&self, number: u32) -> Duration {
        let growth = self.backoff.powi(i32::try_from(number).unwrap_or(i32::MAX));
        let ceiling = self.initial_delay.as_secs_f64() * growth;
        Duration::from_secs_f64(ceiling.min(self.max_delay.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_their_bound() {
        let retry = Retry::default();
        let ceilings: Vec<_> = (0..7).map(|n| retry.ceiling(n).as_secs()).collect();
        assert_eq!(ceilings, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(retry.ceiling(u32::MAX), retry.max_delay);
        assert!((0..100).all(|_| retry.delay(2) <= Duration::from_secs(4)));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_bound() {
        let wrong = Retry {
            max_delay: Duration::from_millis(10),
            ..Retry::default()
        };
        let told = wrong.check().unwrap_err().to_string();
        assert_eq!(told, "max_delay '10ms': must be at least initial_delay, 1s");
    }
}
