//! Waiting longer after each failure, at random, so that many clients do not
//! come back together.

use std::time::Duration;

/// Delays with full jitter: each is drawn between nothing and a ceiling that
/// doubles up to a bound.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    ceiling: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            ceiling: first,
        }
    }

    /// How long to wait now.
    pub(crate) fn delay(&mut self) -> Duration {
        let delay = self.ceiling.mul_f64(fastrand::f64());
        self.ceiling = (self.ceiling * 2).min(self.longest);
        delay
    }

    /// It worked: the next delay is short again.
    pub(crate) fn reset(&mut self) {
        self.ceiling = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_their_bound_and_shrink_after_success() {
        let (first, longest) = (Duration::from_millis(10), Duration::from_millis(80));
        let mut backoff = Backoff::new(first, longest);
        let ceilings: Vec<_> = (0..6)
            .map(|_| {
                let ceiling = backoff.ceiling;
                assert!(backoff.delay() <= ceiling);
                ceiling.as_millis()
            })
            .collect();
        assert_eq!(ceilings, [10, 20, 40, 80, 80, 80]);
        backoff.reset();
        assert!(backoff.delay() <= first);
    }
}
