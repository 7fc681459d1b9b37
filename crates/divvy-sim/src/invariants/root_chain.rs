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
}

impl RootChain {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self { newest: None }
    }
}

impl Invariant for RootChain {
    const NUMBER: &'static str = "I3";
    const PROPERTY: &'static str = "root (epoch, version) strictly increases within an incarnation, and each commit derives from its predecessor";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::RootWritten { root, by, .. } => {
                let version = root.root.version;
                if self.newest.is_some_and(|newest| version <= newest) {
                    let newest = self.newest.expect("just compared");
                    return Err(format!("m{by} committed root {version} after {newest}"));
                }
                self.newest = Some(version);
                Ok(())
            }
            Fact::Forgot { .. } => {
                self.newest = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
