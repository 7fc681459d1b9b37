//! Pausing when the store fails: what need not be done now waits.

use std::time::Duration;

use crate::moment::Moment;
use crate::random::Random;

/// Shortest pause: full jitter may draw next to nothing.
const PAUSE_MIN: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Default)]
pub(super) struct Backoff {
    failures: u32,
    until: Option<Moment>,
}

impl Backoff {
    /// The store failed. Gives how long the pause is, if one begins.
    pub(super) fn fail(
        &mut self,
        now: Moment,
        (first, most): (Duration, Duration),
        random: &mut Random,
    ) -> Option<Duration> {
        if self.is_active(now) {
            return None;
        }
        let pause = pause(self.failures, (first, most), random);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now + pause);
        Some(pause)
    }

    /// The store answered. Whether it had failed before.
    pub(super) fn succeed(&mut self, now: Moment) -> bool {
        if self.is_active(now) || self.failures == 0 {
            return false;
        }
        *self = Self::default();
        true
    }

    /// The store answered something: what waits need not wait longer than this.
    /// Whether that is sooner than before.
    pub(super) fn hasten(&mut self, now: Moment, until: Moment) -> bool {
        let is_sooner = self.until(now).is_some_and(|pause| until < pause);
        if is_sooner {
            self.until = Some(until);
        }
        is_sooner
    }

    pub(super) fn is_active(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// When the pause ends, if there is one.
    pub(super) fn until(&self, now: Moment) -> Option<Moment> {
        self.until.filter(|until| now < *until)
    }

    /// The pause never ends: for planted mistakes only.
    pub(super) fn stay(&mut self) {
        self.until = Some(Moment::from_origin(Duration::MAX));
    }
}

/// How long to pause after so many failures: something from nothing up to a
/// span that doubles with each.
pub(super) fn pause(
    failures: u32,
    (first, most): (Duration, Duration),
    random: &mut Random,
) -> Duration {
    let span = first.saturating_mul(1 << failures.min(20)).min(most);
    random.within(span).max(PAUSE_MIN)
}
