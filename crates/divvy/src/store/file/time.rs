//! The machine's clock, in the numbers that the database holds.

use std::time::Duration;

use crate::store::clock;

/// Nanoseconds since the machine started, suspends included: the same for all
/// of its processes.
pub(super) fn now() -> i64 {
    nanos(clock::boottime().to_origin())
}

/// A span in nanoseconds: 292 years at most.
pub(super) fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// How long it is from `now` to `until`.
pub(super) fn left(now: i64, until: i64) -> Duration {
    Duration::from_nanos(u64::try_from(until.saturating_sub(now)).unwrap_or_default())
}
