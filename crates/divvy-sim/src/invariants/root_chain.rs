//! I3: root (epoch, version) strictly increases within an incarnation, and
//! each commit derives from its predecessor.
//!
//! The store applies a root only over the revision that its writer names, and
//! what changed from the one before is I4's to judge; what is left is that
//! versions rise.

use divvy_core::leader::Version;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct RootChain {
    /// The newest version since the store last forgot something.
    newest: Option<Version>,
    /// The newest that a stranger deleted. A root that is written in its place
    /// may have been sent before, or by somebody who has not seen it: it grants
    /// nothing, and what does has to be newer.
    deleted: Option<Version>,
}

impl RootChain {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self {
            newest: None,
            deleted: None,
        }
    }
}

impl Invariant for RootChain {
    const NUMBER: &'static str = "I3";
    const PROPERTY: &'static str = "root (epoch, version) strictly increases within an incarnation, and each commit derives from its predecessor";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::RootWritten { root, by, .. } => {
                let version = root.root.version;
                if seen.ledger.root.is_none() {
                    self.deleted = self.deleted.max(self.newest.take());
                }
                let before = match root.root.quarantine {
                    true => self.newest,
                    false => self.newest.max(self.deleted),
                };
                self.newest = Some(version);
                match before.filter(|before| version <= *before) {
                    Some(before) => Err(format!("m{by} committed root {version} after {before}")),
                    None => Ok(()),
                }
            }
            Fact::Forgot { .. } => {
                (self.newest, self.deleted) = (None, None);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
