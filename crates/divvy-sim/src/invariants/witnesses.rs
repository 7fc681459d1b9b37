//! Who could tell that a store forgot in silence.

use std::collections::BTreeSet;

use divvy_core::leader::Version;
use divvy_core::store::Token;

use crate::fact::{Fact, Seen};

/// Members that adopted a root which the store lost without saying so. When all
/// of them are gone before one has told, nobody else can find out: a worker that
/// comes back then has what the store says that it has, and only the tokens of
/// what was lost protect a resource from it.
#[derive(Debug, Clone)]
pub(super) struct Witnesses {
    /// The newest root that each process has adopted.
    adopted: Vec<Version>,
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
    pub(super) fn new(members: usize) -> Self {
        Self {
            adopted: vec![Version::default(); members],
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
            Fact::Forgot { announced: false } => {
                let root = seen.ledger.root.as_ref();
                let kept = root.map_or_else(Version::default, |root| root.value.root.version);
                let adopted = self.adopted.iter().enumerate();
                let knowing = adopted.filter(|(_, version)| **version > kept);
                let knowing: BTreeSet<usize> = knowing.map(|(member, _)| member).collect();
                let newest = self.adopted.iter().max().copied().unwrap_or_default();
                self.lost = (!knowing.is_empty()).then_some(Lost {
                    roots: (kept, newest),
                    knowing,
                });
            }
            Fact::WorkerWritten { record, .. } if record.alarm > 0 => self.lost = None,
            _ => {}
        }
    }

    /// Whether this token was given by a root that was lost, and nobody is left
    /// who could have told.
    pub(super) fn are_gone(&self, token: Token) -> bool {
        self.lost.as_ref().is_some_and(|lost| {
            let (kept, newest) = lost.roots;
            let is_lost = kept.token() < Some(token) && Some(token) <= newest.token();
            is_lost && lost.knowing.is_empty()
        })
    }
}
