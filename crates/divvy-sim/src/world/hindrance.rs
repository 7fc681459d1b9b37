//! What keeps members from their store, and until when each could reach it.

use std::time::Duration;

use super::WorldOf;
use super::coordination::Coordination;
use crate::time::{NEVER, TrueTime};

/// A span in which one member, or all, may not reach the store and be answered.
#[derive(Debug, Clone, Copy)]
struct Hindrance {
    member: Option<usize>,
    from: TrueTime,
    until: TrueTime,
}

/// All of them, in the order in which they began.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hindrances(Vec<Hindrance>);

impl Hindrances {
    /// The last moment until which a member could reach the store for so long
    /// without a break; nothing if it never could since it was `booted`.
    pub(crate) fn reached_until(
        &self,
        member: usize,
        booted: TrueTime,
        now: TrueTime,
        long: Duration,
    ) -> Option<TrueTime> {
        let mut free = booted;
        let mut reached = None;
        let is_of = |it: &&Hindrance| it.member.is_none_or(|of| of == member);
        for hindrance in self.0.iter().filter(is_of) {
            if hindrance.from >= free + long {
                reached = Some(hindrance.from);
            }
            free = free.max(hindrance.until);
        }
        if now >= free + long {
            reached = Some(now);
        }
        reached
    }
}

impl<C: Coordination> WorldOf<C> {
    /// One member, or all, may not reach the store for a while.
    pub(crate) fn hinder(&mut self, member: Option<usize>, lasts: Duration) {
        self.hindrances.0.push(Hindrance {
            member,
            from: self.now,
            until: self.now + lasts,
        });
    }

    /// The same, until this says otherwise.
    pub(crate) fn hinder_while(&mut self, member: Option<usize>, is_hindered: bool) {
        let is_open = |it: &&mut Hindrance| it.member == member && it.until == NEVER;
        let open = self.hindrances.0.iter_mut().find(is_open);
        match (open, is_hindered) {
            (Some(hindrance), false) => hindrance.until = self.now,
            (None, true) => self.hinder(member, NEVER.elapsed()),
            _ => {}
        }
    }
}
