//! Until when what a store that forgot in silence breaks is excused.

use std::time::Duration;

use crate::fact::{Fact, Seen};
use crate::time::TrueTime;

/// A store that forgets and does not say so is outside of what is promised;
/// what it breaks is over after this. Only time in which the store answers
/// counts: nobody can find out before.
#[derive(Debug, Clone)]
pub(super) struct Excuse {
    until: TrueTime,
    /// Until when the store answers nobody.
    unanswered: TrueTime,
    lasts: Duration,
}

impl Excuse {
    /// None so far; each lasts so long.
    pub(super) const fn new(lasts: Duration) -> Self {
        Self {
            until: TrueTime::ZERO,
            unanswered: TrueTime::ZERO,
            lasts,
        }
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>) {
        match *seen.fact {
            Fact::Forgot { announced: false } => {
                self.until = seen.at.max(self.unanswered) + self.lasts;
            }
            Fact::Unanswered { until } => {
                let more = until.since(seen.at.max(self.unanswered));
                self.unanswered = self.unanswered.max(until);
                if self.covers(seen.at) {
                    self.until = self.until + more;
                }
            }
            _ => {}
        }
    }

    pub(super) fn covers(&self, at: TrueTime) -> bool {
        at < self.until
    }
}
