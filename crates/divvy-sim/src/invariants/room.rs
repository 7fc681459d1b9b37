//! P4 of leases: no partition unowned while a healthy worker that serves it has
//! room, nobody with more than it may have, and nobody who gives up for others
//! what it should keep.

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct Room;

impl Room {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self
    }
}

impl Invariant for Room {
    const NUMBER: &'static str = "P4";
    const PROPERTY: &'static str =
        "no partition unowned while a healthy worker that serves it has room, and limits are kept";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Surveyed(survey) => {
                if let Some(partition) = survey.unserved.first() {
                    let count = survey.unserved.len();
                    return Err(format!(
                        "{count} partitions have no owner, partition {partition} among them"
                    ));
                }
                match survey.crowded.first() {
                    Some(member) => Err(format!("m{member} has more than it may")),
                    None => Ok(()),
                }
            }
            Fact::Took {
                member,
                owned,
                most,
            } if owned > most => Err(format!("m{member} has {owned} and may have {most}")),
            Fact::Shed {
                member,
                left,
                least,
                ..
            } if left < least => Err(format!(
                "m{member} keeps {left} and gives up none below {least}"
            )),
            _ => Ok(()),
        }
    }
}
