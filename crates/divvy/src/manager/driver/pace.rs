//! How often a driver shows what it has.

use std::time::Duration;

use divvy_core::Moment;

/// Whoever owns many partitions shows them only so often: each time costs as
/// much as there are.
const SHOW_INTERVAL: Duration = Duration::from_millis(50);
const MANY_PARTITIONS: usize = 1000;
/// Between two times, so many times what the first of them took, unless that is
/// nothing. However long it is on a slow machine, most of the time is left for
/// everything else; and few may be shown of many that are looked through.
const REST: u32 = 10;
const QUICK: Duration = Duration::from_millis(1);

/// When something that has changed is shown.
#[derive(Debug)]
pub(super) struct Pace {
    is_wanted: bool,
    due: Moment,
}

impl Pace {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            is_wanted: false,
            due: now,
        }
    }

    /// Something has changed.
    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// When something has to be shown, if anything has.
    pub(super) fn due(&self) -> Option<Moment> {
        self.is_wanted.then_some(self.due)
    }

    /// Whether to show it now.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.is_wanted && now >= self.due
    }

    /// So many partitions were shown, from then till now.
    pub(super) fn shown(&mut self, begun: Moment, now: Moment, partitions: usize) {
        self.is_wanted = false;
        let took = now.since(begun);
        let least = match partitions > MANY_PARTITIONS {
            true => SHOW_INTERVAL,
            false => Duration::ZERO,
        };
        let rest = match took > QUICK {
            true => took * REST,
            false => Duration::ZERO,
        };
        self.due = now + least.max(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often all is shown while `inputs` things happen, each of which
    /// changes something and takes a microsecond.
    fn shown_during(inputs: u32, partitions: usize, cost: Duration) -> u32 {
        let mut now = Moment::from_origin(Duration::from_secs(1));
        let (mut pace, mut times) = (Pace::new(now), 0);
        for _ in 0..inputs {
            now = now + Duration::from_micros(1);
            pace.want();
            if pace.is_due(now) {
                let begun = now;
                now = now + cost;
                pace.shown(begun, now, partitions);
                times += 1;
            }
        }
        times
    }

    #[test]
    fn showing_many_partitions_does_not_follow_every_one_that_stops() {
        // Even where showing them once takes longer than the interval.
        for cost in [1, 49, 50, 51, 200, 5_000] {
            let times = shown_during(200_000, 100_000, Duration::from_millis(cost));
            assert!((1..=4).contains(&times), "{times} times at {cost} ms");
        }
    }

    #[test]
    fn showing_few_of_many_does_not_follow_every_one_that_starts() {
        let times = shown_during(200_000, 10, Duration::from_millis(9));
        assert!((1..=4).contains(&times), "{times} times");
    }

    #[test]
    fn few_partitions_are_shown_at_once() {
        assert_eq!(shown_during(500, 1_000, Duration::from_micros(9)), 500);
    }

    #[test]
    fn what_has_changed_is_shown_in_the_end() {
        let at = |ms| Moment::from_origin(Duration::from_millis(ms));
        let mut pace = Pace::new(at(0));
        assert_eq!(pace.due(), None);
        pace.want();
        assert!(pace.is_due(at(0)));
        pace.shown(at(0), at(20), 100_000);
        pace.want();
        assert!(!pace.is_due(at(219)));
        assert_eq!(pace.due(), Some(at(220)));
        assert!(pace.is_due(at(220)));
    }
}
