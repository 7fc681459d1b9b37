//! Clocks of members: each runs a little too fast or too slow, and none knows
//! true time.

use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::Clock;

use crate::time::TrueTime;

/// Furthest that a clock's rate is off, in millionths: the protocol's rho.
pub const RATE_ERROR_MAX_PPM: i64 = 20_000;
/// Wall clocks at the world's beginning, in milliseconds.
const UNIX_MS_BASE: u64 = 1_750_000_000_000;
const MILLION: u64 = 1_000_000;

/// A member's clock. It goes on while the member is paused or its machine
/// suspended.
#[derive(Debug, Clone, Copy)]
pub struct MemberClock {
    offset: Duration,
    rate_error_ppm: i64,
    wall_error_ms: i64,
}

impl MemberClock {
    /// A clock that showed `offset` when the world began, is off by
    /// `rate_error_ppm` millionths, and whose wall clock is off by
    /// `wall_error_ms`.
    pub fn new(offset: Duration, rate_error_ppm: i64, wall_error_ms: i64) -> Self {
        assert!(
            rate_error_ppm.abs() <= RATE_ERROR_MAX_PPM,
            "clocks are off by at most rho"
        );
        Self {
            offset,
            rate_error_ppm,
            wall_error_ms,
        }
    }

    /// What it shows at `time`.
    pub fn at(&self, time: TrueTime) -> Moment {
        let (nanos, rate) = (time.nanos(), self.rate());
        let nanos = match nanos.checked_mul(rate) {
            Some(product) => product / MILLION,
            None => narrow(u128::from(nanos) * u128::from(rate) / u128::from(MILLION)),
        };
        Moment::from_origin(self.offset + Duration::from_nanos(nanos))
    }

    /// The first time at which it shows `moment` or later.
    pub fn time_of(&self, moment: Moment) -> TrueTime {
        let rate = self.rate();
        let shown = moment.to_origin().saturating_sub(self.offset);
        let nanos = narrow(shown.as_nanos());
        let nanos = match nanos.checked_mul(MILLION) {
            Some(product) => product.div_ceil(rate),
            None => narrow((u128::from(nanos) * u128::from(MILLION)).div_ceil(u128::from(rate))),
        };
        TrueTime::from_nanos(nanos)
    }

    /// How far it goes while a million passes.
    fn rate(&self) -> u64 {
        MILLION.saturating_add_signed(self.rate_error_ppm)
    }

    /// Sets its wall clock by so much.
    pub(crate) fn step_wall(&mut self, by_ms: i64) {
        self.wall_error_ms = self.wall_error_ms.saturating_add(by_ms);
    }

    /// Both clocks at `time`, as the machine is handed them.
    pub fn both_at(&self, time: TrueTime) -> Clock {
        let wall = UNIX_MS_BASE + time.nanos() / 1_000_000;
        Clock {
            now: self.at(time),
            unix_ms: wall.saturating_add_signed(self.wall_error_ms),
        }
    }
}

/// What does not fit is as far as can be told.
fn narrow(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_from_its_time_on_and_not_before() {
        for error in [-RATE_ERROR_MAX_PPM, -7, 0, 3, RATE_ERROR_MAX_PPM] {
            let clock = MemberClock::new(Duration::from_secs(9), error, 0);
            for nanos in [1, 999, 1_000_001, 123_456_789_012] {
                let moment = clock.at(TrueTime::from_nanos(nanos));
                let time = clock.time_of(moment);
                assert!(clock.at(time) >= moment);
                let before = TrueTime::from_nanos(time.nanos().saturating_sub(1));
                assert!(time == before || clock.at(before) < moment);
            }
        }
    }
}
