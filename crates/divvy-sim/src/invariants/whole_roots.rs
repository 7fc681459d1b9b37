//! I8: every root covers every known partition exactly once.
//!
//! A partition becomes known by a root that names it, and stays known until the
//! source has given a list without it. That nobody holds it any more when it
//! leaves the root is I4's to judge.

use std::collections::BTreeSet;

use divvy_core::leader::Committed;
use divvy_core::{Partition, Partitions};

use super::{Bounds, Invariant};
use crate::fact::{Fact, Seen};

#[derive(Debug, Clone)]
pub(super) struct WholeRoots {
    sessions: BTreeSet<u128>,
    /// Partitions that every list of the source has had.
    always: Option<Partitions>,
}

impl WholeRoots {
    pub(super) const fn new(_: &Bounds) -> Self {
        Self {
            sessions: BTreeSet::new(),
            always: None,
        }
    }

    /// Every partition of the root before is in this one, unless some list of
    /// the source has not had it.
    fn keeps(&self, before: &Committed, root: &Committed) -> Result<(), String> {
        if before.partitions == root.partitions {
            return Ok(());
        }
        let mut known = before.partitions.iter().map(Partition::as_str);
        let is_given = |name: &str| {
            let always = self.always.as_ref();
            always.is_some_and(|always| always.index_of(name).is_some())
        };
        let lost = known.find(|name| root.partitions.index_of(name).is_none() && is_given(name));
        match lost {
            None => Ok(()),
            Some(name) => Err(format!("{name} is left out, and the source has it")),
        }
    }

    fn given(&mut self, list: &Partitions) {
        let Some(always) = &self.always else {
            self.always = Some(list.clone());
            return;
        };
        let is_in = |partition: &&Partition| list.index_of(partition.as_str()).is_some();
        if always.iter().all(|partition| is_in(&partition)) {
            return;
        }
        let kept = always.iter().filter(is_in).cloned();
        self.always = Some(Partitions::new(kept).expect("part of a set is a set"));
    }

    fn check(&mut self, root: &Committed) -> Result<(), String> {
        let (entries, partitions) = (root.root.holdings.len(), root.partitions.len());
        if entries != partitions {
            return Err(format!("{entries} entries for {partitions} partitions"));
        }
        let sessions = root.root.sessions.len();
        for (index, holding) in root.root.holdings.iter().enumerate() {
            let Some(session) = holding.session() else {
                continue;
            };
            if session as usize >= sessions {
                return Err(format!(
                    "entry {index} names session {session} of {sessions}"
                ));
            }
        }
        self.sessions.clear();
        for entry in &root.root.sessions {
            if !self.sessions.insert(entry.session.0) {
                return Err(format!("the session of {} is there twice", entry.worker));
            }
        }
        Ok(())
    }
}

impl Invariant for WholeRoots {
    const NUMBER: &'static str = "I8";
    const PROPERTY: &'static str = "every root covers every known partition exactly once";

    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        match *seen.fact {
            Fact::RootWritten { root, .. } => {
                if let Some(before) = &seen.ledger.root {
                    self.keeps(&before.value, root)?;
                }
                self.check(root)
            }
            Fact::Sourced { partitions } => {
                self.given(partitions);
                Ok(())
            }
            Fact::Garbled { key, why } => Err(format!("{key} cannot be read: {why}")),
            _ => Ok(()),
        }
    }
}
