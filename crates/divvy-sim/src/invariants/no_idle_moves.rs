//! P2: stable membership and weights: no moves at all.

use divvy_core::leader::{Committed, Holding, SessionId};

use super::{Bounds, Invariant};
use crate::fact::{Fact, Phase, Seen};

#[derive(Debug, Clone)]
pub(super) struct NoIdleMoves {
    quiet: bool,
}

impl NoIdleMoves {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self { quiet: false }
    }
}

/// Who holds each partition, or has to give it back.
fn holders(root: &Committed) -> impl Iterator<Item = (&str, Option<SessionId>, bool)> {
    let entries = root.partitions.iter().zip(&root.root.holdings);
    entries.map(|(partition, holding)| {
        let session = |index: u32| Some(root.root.sessions[index as usize].session);
        match *holding {
            Holding::None => (partition.as_str(), None, false),
            Holding::Held { session: index, .. } => (partition.as_str(), session(index), false),
            Holding::Revoking { session: index, .. } => (partition.as_str(), session(index), true),
        }
    })
}

impl Invariant for NoIdleMoves {
    const NUMBER: &'static str = "P2";
    const PROPERTY: &'static str = "stable membership and weights: no moves at all";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Entered(phase) => {
                self.quiet = phase == Phase::Quiet;
                Ok(())
            }
            Fact::RootWritten { root, by, .. } if self.quiet => {
                let Some(before) = &seen.ledger.root else {
                    return Ok(());
                };
                if holders(&before.value).eq(holders(root)) {
                    return Ok(());
                }
                let version = root.root.version;
                Err(format!("m{by} moved partitions by root {version}"))
            }
            Fact::Forgot { .. } if self.quiet => Err("a store forgot in peace".to_owned()),
            _ => Ok(()),
        }
    }
}
