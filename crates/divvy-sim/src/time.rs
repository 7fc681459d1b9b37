//! True time: what no member can read.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// For ever.
pub(crate) const NEVER: TrueTime = TrueTime::from_nanos(u64::MAX);

/// A point in the time of the world, from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TrueTime(u64);

impl TrueTime {
    /// When the world begins.
    pub const ZERO: Self = Self(0);

    /// So many nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the beginning.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// How long after the beginning this is.
    pub const fn elapsed(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// How long after `earlier` this is; nothing if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for TrueTime {
    type Output = Self;

    /// A sum beyond what the type can hold is the last time there is.
    fn add(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl fmt::Display for TrueTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:06}",
            self.0 / 1_000_000_000,
            self.0 / 1_000 % 1_000_000
        )
    }
}
