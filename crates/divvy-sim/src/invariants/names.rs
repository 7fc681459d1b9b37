//! I10: names are injective and stay inside their prefix.

use std::collections::BTreeSet;

use divvy_core::store::Key;

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

/// What the first part of a key may be.
const PREFIXES: [&str; 6] = ["leader", "root", "w", "c", "ctl", "moves"];

#[derive(Debug, Clone)]
pub(super) struct Names {
    known: BTreeSet<Key>,
}

impl Names {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self {
            known: BTreeSet::new(),
        }
    }
}

impl Invariant for Names {
    const NUMBER: &'static str = "I10";
    const PROPERTY: &'static str = "names are injective and stay inside their prefix";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let Fact::Stored { key, .. } = *seen.fact else {
            return Ok(());
        };
        if self.known.contains(key) {
            return Ok(());
        }
        let parts = key.parts();
        let again = Key::new(parts.iter().map(String::as_str));
        if again.as_ref() != Ok(key) {
            return Err(format!(
                "{key} is read as {parts:?} and written as {again:?}"
            ));
        }
        if !PREFIXES.contains(&parts[0].as_str()) {
            return Err(format!("{key} begins with none of {PREFIXES:?}"));
        }
        self.known.insert(key.clone());
        Ok(())
    }
}
