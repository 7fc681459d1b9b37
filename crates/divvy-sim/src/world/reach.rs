//! How a store is reached, whatever it holds.

use divvy_core::store::Incarnation;

use crate::hands::StoreState;
use crate::time::{NEVER, TrueTime};

#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    /// Which life the store is in, as it says; also kept where it says nothing.
    pub(crate) life: u32,
    /// How often it went back to what it was: what it had sent before, and what
    /// was on its way to it, is lost with the rest.
    pub(crate) forgotten: u32,
    /// It does nothing until then.
    pub(crate) stalled_until: TrueTime,
    /// It refuses whatever it is asked until then.
    pub(crate) refuses_until: TrueTime,
    /// It is being restarted until then.
    pub(crate) down_until: TrueTime,
}

impl Reach {
    pub(crate) fn incarnation(&self) -> Incarnation {
        Incarnation::new(format!("life-{}", self.life))
    }

    /// It begins another life, and can be reached again at `up`.
    pub(crate) fn restart(&mut self, up: TrueTime) {
        self.life += 1;
        self.down_until = up;
    }

    /// It answers from now on, or does not.
    pub(crate) fn set(&mut self, state: StoreState) {
        self.refuses_until = match state {
            StoreState::Down => NEVER,
            StoreState::Up | StoreState::Slow => TrueTime::ZERO,
        };
    }

    /// It does what it is asked for again.
    pub(crate) fn recover(&mut self, now: TrueTime) {
        self.stalled_until = self.stalled_until.min(now);
        self.refuses_until = TrueTime::ZERO;
    }
}
