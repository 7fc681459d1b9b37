//! I7: the adopted (epoch, version) never decreases in a session.

use divvy_core::leader::{SessionId, Version};

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct Adoption {
    newest: Vec<Option<(SessionId, Version)>>,
}

impl Adoption {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            newest: vec![None; bounds.members_max],
        }
    }
}

impl Invariant for Adoption {
    const NUMBER: &'static str = "I7";
    const PROPERTY: &'static str = "the adopted (epoch, version) never decreases in a session";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Adopted {
                member,
                session: Some(session),
                version,
            } => {
                let last = self.newest[member].replace((session, version));
                match last {
                    Some((of, last)) if of == session && version < last => {
                        Err(format!("m{member} adopted {version} after {last}"))
                    }
                    _ => Ok(()),
                }
            }
            Fact::Gone { member, .. } => {
                self.newest[member] = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
