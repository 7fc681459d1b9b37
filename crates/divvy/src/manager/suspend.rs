//! Noticing that the machine was suspended.

use std::time::{Duration, Instant};

use crate::store::clock::boottime;

/// Less than this may be the clocks' own noise.
const SHORTEST: Duration = Duration::from_millis(5);

/// Compares a clock that counts suspends with one that does not.
#[derive(Debug)]
pub(super) struct Suspends {
    origin: Instant,
    /// How far the two were apart when looked at last, at most.
    apart: Duration,
}

impl Default for Suspends {
    fn default() -> Self {
        let origin = Instant::now();
        let apart = boottime().to_origin();
        Self { origin, apart }
    }
}

impl Suspends {
    /// Whether there was a suspend since the last look.
    pub(super) fn look(&mut self) -> bool {
        // A pause between two readings must not look like a suspend, so the
        // other clock is read on both sides.
        let before = self.origin.elapsed();
        let counting = boottime().to_origin();
        let after = self.origin.elapsed();
        self.compare(before, counting, after)
    }

    fn compare(&mut self, before: Duration, counting: Duration, after: Duration) -> bool {
        let at_least = counting.saturating_sub(after);
        let was_suspended = at_least > self.apart + SHORTEST;
        let at_most = counting.saturating_sub(before);
        self.apart = match was_suspended {
            true => at_most,
            false => self.apart.max(at_least),
        };
        was_suspended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_suspend_is_seen_once_and_a_pause_is_none() {
        let mut suspends = Suspends {
            origin: Instant::now(),
            apart: ms(1000),
        };
        assert!(!suspends.compare(ms(10), ms(1010), ms(10)));
        // Stopped between the readings, in either place.
        assert!(!suspends.compare(ms(20), ms(3020), ms(2020)));
        assert!(!suspends.compare(ms(2030), ms(3030), ms(9030)));
        // Suspended for a second.
        assert!(suspends.compare(ms(9040), ms(11_040), ms(9040)));
        assert!(!suspends.compare(ms(9050), ms(11_050), ms(9050)));
    }

    #[test]
    fn the_clocks_of_this_machine_agree_while_it_runs() {
        let mut suspends = Suspends::default();
        for _ in 0..1000 {
            assert!(!suspends.look());
        }
    }
}
