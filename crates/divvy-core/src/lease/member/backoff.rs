//! Pausing when the store fails: what need not be done now waits.

use std::collections::BTreeSet;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use super::operations::Purpose;
use crate::moment::Moment;
use crate::random::Random;

/// Shortest pause: full jitter may draw next to nothing.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Most refusals that are reported before the store works again.
const REPORTED_MAX: usize = 100;

#[derive(Debug, Clone, Default)]
pub(super) struct Backoff {
    /// Pauses since the store last worked.
    failures: u32,
    until: Option<Moment>,
    /// Kinds of operations that have failed and not succeeded since.
    failed: Vec<Discriminant<Purpose>>,
    /// The pause began because the store refused something: it was reached.
    is_refused: bool,
    /// Since when nothing has failed.
    calm_since: Option<Moment>,
    /// Refusals that were reported since the store last worked.
    reported: BTreeSet<Box<str>>,
}

impl Backoff {
    /// Whether a refusal has to be reported: once, until the store works again.
    pub(super) fn report(&mut self, refusal: &str) -> bool {
        self.reported.len() < REPORTED_MAX && self.reported.insert(refusal.into())
    }

    /// An operation failed, or was refused. Gives how long the pause is, if one
    /// begins.
    pub(super) fn fail(
        &mut self,
        now: Moment,
        (purpose, is_refused): (&Purpose, bool),
        (first, most): (Duration, Duration),
        random: &mut Random,
    ) -> Option<Duration> {
        if !self.has_failed(purpose) {
            self.failed.push(discriminant(purpose));
        }
        self.calm_since = None;
        if self.is_active(now) {
            return None;
        }
        self.is_refused = is_refused;
        let pause = pause(self.failures, (first, most), random);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now + pause);
        Some(pause)
    }

    /// An operation succeeded. Whether the store works again by that: each kind
    /// of operation that failed has succeeded since.
    pub(super) fn succeed(&mut self, now: Moment, purpose: &Purpose) -> bool {
        let is_active = self.is_active(now);
        // Other operations that end during a pause were sent before it.
        if self.failures == 0 || is_active && !purpose.goes_on() {
            return false;
        }
        self.failed.retain(|kind| *kind != discriminant(purpose));
        let is_over = self.failed.is_empty() && !is_active;
        if is_over {
            *self = Self::default();
        }
        is_over
    }

    /// Everything was looked at. Whether nothing has failed for this long: what
    /// failed before is perhaps not needed any more.
    pub(super) fn is_calm(&mut self, now: Moment, span: Duration) -> bool {
        if self.failures == 0 || self.is_active(now) {
            return false;
        }
        let since = *self.calm_since.get_or_insert(now);
        now.since(since) >= span
    }

    /// Whether operations of this kind have failed and not succeeded since.
    pub(super) fn has_failed(&self, purpose: &Purpose) -> bool {
        self.failed.contains(&discriminant(purpose))
    }

    /// Whether an answer says that a pause need not last: where the store was
    /// not reached, and the next try does not fail all the same; or where it
    /// answers what had failed.
    pub(super) fn is_answered(&self, purpose: Option<&Purpose>) -> bool {
        let may_be_reached = !self.is_refused && self.failures <= 1;
        may_be_reached || purpose.is_some_and(|purpose| self.has_failed(purpose))
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
