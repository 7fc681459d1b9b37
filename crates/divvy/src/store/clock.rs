//! The clocks of this machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use divvy_core::Moment;

/// Now, on the clock that every process of this machine shares, that nobody
/// can set and that counts the time of a suspend.
pub(crate) fn boottime() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Moment::from_origin(Duration::new(seconds, nanos))
}

/// Milliseconds of the wall clock: for the floor of tokens only, never for
/// expiry.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
