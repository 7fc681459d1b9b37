//! Points in time that are handed in, never read.

use std::ops::Add;
use std::time::Duration;

/// A point on one process's own clock: monotonic, and counting the time that
/// the machine was suspended. Its origin means nothing, so moments of two
/// processes must never be compared.
///
/// ```
/// use divvy_core::Moment;
/// use std::time::Duration;
///
/// let start = Moment::from_origin(Duration::from_secs(5));
/// let later = start + Duration::from_millis(700);
/// assert_eq!(later.since(start), Duration::from_millis(700));
/// assert_eq!(start.since(later), Duration::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// The moment that lies `elapsed` after the clock's origin.
    pub const fn from_origin(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// How long after the clock's origin this is.
    pub const fn to_origin(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; nothing if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// A sum beyond what the type can hold is the last moment there is.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}
