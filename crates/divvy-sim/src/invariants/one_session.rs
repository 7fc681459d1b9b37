//! I6: at most one unexpired session per stable id.
//!
//! A store that has forgotten an id gives it away at once, announced or not;
//! nothing is granted to whoever takes it before the quarantine is over. So
//! the time of a lease after an amnesia does not count.

use std::collections::BTreeMap;

use divvy_core::leader::SessionId;

use super::{Bounds, Invariant};
use crate::fact::{Disturbed, Fact, Seen};
use crate::time::TrueTime;

#[derive(Debug, Clone)]
pub(super) struct OneSession {
    /// Who has worked under each id, and until when.
    holders: BTreeMap<Box<str>, Vec<(usize, SessionId, TrueTime)>>,
    excused: TrueTime,
    excuse: std::time::Duration,
    /// Where work may outlast its lease, it ends with no deadline.
    is_promised: bool,
}

impl OneSession {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            holders: BTreeMap::new(),
            excused: TrueTime::ZERO,
            excuse: bounds.lease * 2,
            is_promised: bounds.is_exclusive,
        }
    }

    fn extend(
        &mut self,
        at: TrueTime,
        member: usize,
        (id, session): (&str, SessionId),
        until: TrueTime,
    ) -> Result<(), String> {
        if !self.holders.contains_key(id) {
            self.holders.insert(id.into(), Vec::new());
        }
        let holders = self.holders.get_mut(id).expect("just inserted");
        holders.retain(|&(who, _, until)| who != member && until > at);
        let other = holders.first().copied();
        holders.push((member, session, until));
        match other {
            Some((other, theirs, end)) if theirs != session && at >= self.excused => Err(format!(
                "m{member} works as {id} until {until}, and so does m{other} until {end}"
            )),
            _ => Ok(()),
        }
    }
}

impl Invariant for OneSession {
    const NUMBER: &'static str = "I6";
    const PROPERTY: &'static str = "at most one unexpired session per stable id";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Deadline {
                member,
                identity: Some(identity),
                until: Some(until),
                ..
            } if self.is_promised && until > seen.at => {
                self.extend(seen.at, member, identity, until)
            }
            Fact::Deadline { member, .. } | Fact::Gone { member, .. } => {
                for holders in self.holders.values_mut() {
                    holders.retain(|&(who, _, _)| who != member);
                }
                Ok(())
            }
            Fact::SessionKept {
                member,
                id,
                session,
                until,
            } => self.extend(seen.at, member, (id, session), until),
            Fact::Forgot { .. } => {
                self.excused = seen.at + self.excuse;
                Ok(())
            }
            Fact::Disturbed {
                whose: Disturbed::Sessions,
                until,
            } => {
                self.excused = until.max(self.excused);
                Ok(())
            }
            Fact::NameTaken {
                member,
                rightly: false,
            } => Err(format!(
                "m{member} ended because its name is taken, and nobody has it"
            )),
            _ => Ok(()),
        }
    }
}
