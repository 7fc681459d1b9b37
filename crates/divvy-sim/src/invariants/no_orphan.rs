//! P4: no partition unowned while a healthy worker has capacity, and no such
//! worker idle while there are partitions for all.

use divvy_core::leader::Holding;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct NoOrphan;

impl NoOrphan {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self
    }
}

impl Invariant for NoOrphan {
    const NUMBER: &'static str = "P4";
    const PROPERTY: &'static str = "no partition unowned while a healthy worker has capacity";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::Surveyed(survey) if survey.eligible => {
                let Some(root) = &seen.ledger.root else {
                    return Err("there is no root".to_owned());
                };
                let holdings = &root.value.root.holdings;
                let unowned = holdings.iter().filter(|h| **h == Holding::None).count();
                match (unowned, survey.idle.first()) {
                    (0, None) => Ok(()),
                    (0, Some(member)) => Err(format!("m{member} is healthy and has nothing")),
                    _ => Err(format!("{unowned} partitions have no owner")),
                }
            }
            _ => Ok(()),
        }
    }
}
