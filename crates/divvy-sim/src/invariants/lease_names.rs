//! I10 of leases: names are injective, and none can be taken for another.

use std::collections::BTreeSet;

use divvy_core::store::LeaseKey;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct LeaseNames {
    known: BTreeSet<LeaseKey>,
}

impl LeaseNames {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self {
            known: BTreeSet::new(),
        }
    }
}

impl Invariant for LeaseNames {
    const NUMBER: &'static str = "I10";
    const PROPERTY: &'static str = "names are injective, and none can be taken for another";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let Fact::LeaseSent { key, .. } = *seen.fact else {
            return Ok(());
        };
        if self.known.contains(key) {
            return Ok(());
        }
        let text = key.to_string();
        let parts: Vec<&str> = text.split(':').collect();
        let again = match parts[..] {
            [group, number] => {
                let number = number.parse().ok();
                number.and_then(|number| LeaseKey::new(group, number).ok())
            }
            _ => None,
        };
        if again.as_ref() != Some(key) {
            return Err(format!("'{text}' is read as {again:?}"));
        }
        self.known.insert(key.clone());
        Ok(())
    }
}
