//! Who could tell that a store forgot in silence.

use std::collections::BTreeSet;

use divvy_core::leader::Version;
use divvy_core::store::Token;

use super::Bounds;
use super::excuse::Excuse;
use crate::fact::{Fact, Seen};
use crate::time::TrueTime;

/// Members that adopted a root which the store lost without saying so. When all
/// of them are gone or not answered until there is a later root, and none has
/// told, nobody can find out any more: a worker that comes back has what the store says that it has, and only
/// the tokens of what was lost protect a resource from it.
#[derive(Debug, Clone)]
pub(super) struct Witnesses {
    /// The newest root that each process has adopted.
    adopted: Vec<Version>,
    /// Until when each member need not have told.
    excuses: Vec<Excuse>,
    lost: Option<Lost>,
}

/// What nobody has told of yet.
#[derive(Debug, Clone)]
struct Lost {
    /// The newest root that is left, and the newest that was lost.
    roots: (Version, Version),
    /// Who is left of those who adopted one of the lost.
    knowing: BTreeSet<usize>,
}

impl Witnesses {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let members = 0..bounds.members_max;
        let excuses = members.map(|member| Excuse::of(member, bounds));
        Self {
            adopted: vec![Version::default(); bounds.members_max],
            excuses: excuses.collect(),
            lost: None,
        }
    }

    pub(super) fn observe(&mut self, seen: &Seen<'_>) {
        match *seen.fact {
            Fact::Adopted {
                member, version, ..
            } => self.adopted[member] = self.adopted[member].max(version),
            Fact::Gone { member, .. } => {
                self.adopted[member] = Version::default();
                if let Some(lost) = &mut self.lost {
                    lost.knowing.remove(&member);
                }
            }
            Fact::Unanswered { .. } => self.observe_excuses(seen),
            Fact::Forgot { announced: false } => {
                self.observe_excuses(seen);
                self.lost = self.lost_beside(seen);
            }
            Fact::WorkerWritten { record, .. } if record.alarm > 0 => self.lost = None,
            Fact::RootWritten { root, .. } => {
                let version = root.root.version;
                let lost = self.lost.as_mut().filter(|lost| version > lost.roots.1);
                if let Some(lost) = lost {
                    // Above all that they knew of: nothing seems to be lost.
                    lost.knowing.clear();
                }
            }
            _ => {}
        }
    }

    fn observe_excuses(&mut self, seen: &Seen<'_>) {
        for excuse in &mut self.excuses {
            excuse.observe(seen);
        }
    }

    /// What was lost of that which anybody has adopted, if anything was.
    fn lost_beside(&self, seen: &Seen<'_>) -> Option<Lost> {
        let root = seen.ledger.root.as_ref();
        let kept = root.map_or_else(Version::default, |root| root.value.root.version);
        let newest = *self.adopted.iter().max()?;
        let members = 0..self.adopted.len();
        let knowing = members.filter(|member| self.adopted[*member] > kept);
        (newest > kept).then_some(Lost {
            roots: (kept, newest),
            knowing: knowing.collect(),
        })
    }

    /// Whether this token was given by a root that was lost, and nobody could
    /// have told by now.
    pub(super) fn cannot_tell(&self, at: TrueTime, token: Token) -> bool {
        self.lost.as_ref().is_some_and(|lost| {
            let (kept, newest) = lost.roots;
            let is_lost = kept.token() < Some(token) && Some(token) <= newest.token();
            let mut knowing = lost.knowing.iter();
            is_lost && knowing.all(|member| self.excuses[*member].covers(at))
        })
    }
}
