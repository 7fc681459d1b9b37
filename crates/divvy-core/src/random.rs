//! Randomness that is handed in as a seed.

use std::time::Duration;

use crate::hash::mix64;

/// SplitMix64: every number of its sequence is a bijection of a counter.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix64(self.state)
    }

    pub(crate) fn next_wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// Something from 0 up to `span`.
    pub(crate) fn within(&mut self, span: Duration) -> Duration {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let share = (u128::from(self.next()) * u128::from(nanos)) >> 64;
        Duration::from_nanos(share as u64)
    }
}
