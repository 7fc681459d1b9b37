//! Trying again: how often, and how long to wait between.

use std::time::Duration;

use divvy_core::leader::{Retries, TIMING_MAX};
use divvy_core::{Invalid, Spelled};

/// Most retries.
const RETRIES_MAX: u32 = 100;
/// Steepest growth of delays.
const BACKOFF_MAX: f64 = 10.0;

/// How what failed is repeated: calls of the source of partitions, the opening of
/// a store, claims of an id, publications of an assignment, and subscriptions to
/// what is watched. Delays grow from `initial_delay` by `backoff` up to
/// `max_delay`, and each is drawn between nothing and that, so that many do not
/// come back together.
///
/// After `max_retries` the source has failed until it is asked again, and a store
/// could not be opened. What a worker cannot do without (the other three) is told
/// then, and tried on, with delays of at most a lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// How often to try again before that is told or given up, at most 100.
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
            return Err(Invalid::new("retry.max_retries", self.max_retries, rule));
        }
        if !(1.0..=BACKOFF_MAX).contains(&self.backoff) {
            let rule = format!("must be in 1..={BACKOFF_MAX}");
            return Err(Invalid::new("retry.backoff", self.backoff, rule));
        }
        if self.max_delay > TIMING_MAX {
            let rule = format!("must be at most {}", Spelled(TIMING_MAX));
            let value = Spelled(self.max_delay);
            return Err(Invalid::new("retry.max_delay", value, rule));
        }
        if self.max_delay < self.initial_delay {
            let least = Spelled(self.initial_delay);
            let rule = format!("must be at least retry.initial_delay, {least}");
            let value = Spelled(self.max_delay);
            return Err(Invalid::new("retry.max_delay", value, rule));
        }
        Ok(())
    }

    /// How long to wait before retry `number`, which counts from 0.
    pub(crate) fn delay(&self, number: u32) -> Duration {
        self.ceiling(number).mul_f64(fastrand::f64())
    }

    /// The same without chance, for what brings its own.
    pub(super) const fn retries(&self) -> Retries {
        Retries {
            max: self.max_retries,
            first: self.initial_delay,
            longest: self.max_delay,
            growth: self.backoff,
        }
    }

    fn ceiling(&self, number: u32) -> Duration {
        self.retries().ceiling(number)
    }
}

/// Tries of something that is never given up.
#[derive(Debug, Clone)]
pub(super) struct Tries {
    retry: Retry,
    /// No delay is longer, whatever the settings say.
    longest: Duration,
    count: u32,
}

impl Tries {
    pub(super) const fn new(retry: Retry, longest: Duration) -> Self {
        Self {
            retry,
            longest,
            count: 0,
        }
    }

    /// One failed: how long to wait before the next.
    pub(super) fn failed(&mut self) -> Duration {
        let ceiling = self.retry.ceiling(self.count).min(self.longest);
        self.count = self.count.saturating_add(1);
        ceiling.mul_f64(fastrand::f64())
    }

    /// Whether it has just failed so often that it has to be told.
    pub(super) const fn is_telling(&self) -> bool {
        self.count == self.retry.max_retries + 1
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
        let rule = "must be at least retry.initial_delay, 1s";
        assert_eq!(told, format!("retry.max_delay '10ms': {rule}"));
    }

    #[test]
    fn delays_are_drawn_below_both_ceilings_and_failure_is_told_once() {
        let retry = Retry::default();
        assert!((0..100).all(|_| retry.delay(2) <= Duration::from_secs(4)));
        let mut tries = Tries::new(retry, Duration::from_secs(3));
        let mut told = 0;
        for number in 0..50 {
            let ceiling = retry.ceiling(number).min(Duration::from_secs(3));
            assert!(tries.failed() <= ceiling);
            told += u32::from(tries.is_telling());
            assert_eq!(told, u32::from(number >= retry.max_retries));
        }
    }
}
