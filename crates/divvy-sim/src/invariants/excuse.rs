//! Until when what a store that forgot in silence breaks is excused.

use std::time::Duration;

use super::Bounds;
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
    /// Whose it is, if it is of one member.
    member: Option<usize>,
}

impl Excuse {
    /// As long as members take to find out, to elect another leader if it was the
    /// leader who did, and to stop.
    pub(super) fn of_rollback(bounds: &Bounds) -> Self {
        Self::new((bounds.lease + bounds.leader_lease) * 2)
    }

    /// None so far; each lasts so long.
    pub(super) const fn new(lasts: Duration) -> Self {
        Self {
            until: TrueTime::ZERO,
            unanswered: TrueTime::ZERO,
            lasts,
            member: None,
        }
    }

    /// The same for what this member has to find out: time in which it is not
    /// answered does not count either.
    pub(super) fn of(member: usize, bounds: &Bounds) -> Self {
        Self {
            member: Some(member),
            ..Self::of_rollback(bounds)
        }
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>) {
        match *seen.fact {
            Fact::Forgot { announced: false } => {
                self.until = seen.at.max(self.unanswered) + self.lasts;
            }
            Fact::Unanswered { member, until } if member.is_none() || member == self.member => {
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
