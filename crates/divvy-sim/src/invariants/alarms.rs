//! I4 of alarms: a member that found that the store forgot says so until a
//! quarantine has answered it.

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct Alarms {
    /// The alarm of each member; 0 is none.
    alarms: Vec<u64>,
    /// The highest epoch of a quarantine that there ever was.
    answered: u64,
}

impl Alarms {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            alarms: vec![0; bounds.members_max],
            answered: 0,
        }
    }
}

impl Invariant for Alarms {
    const NUMBER: &'static str = "I4";
    const PROPERTY: &'static str = "an alarm stands until a quarantine answers it";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::RootWritten { root, .. } => {
                self.answered = self.answered.max(root.root.answered);
            }
            Fact::Alarmed { member, epoch } => {
                let before = std::mem::replace(&mut self.alarms[member], epoch);
                if epoch < before && self.answered <= before {
                    return Err(format!(
                        "m{member} withdraws its alarm of epoch {before}, and the last quarantine \
                         was set in epoch {}",
                        self.answered
                    ));
                }
            }
            Fact::Gone { member, .. } => self.alarms[member] = 0,
            _ => {}
        }
        Ok(())
    }
}
