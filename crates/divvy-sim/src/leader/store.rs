//! The store of a world: the reference table, with a past.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use divvy_core::leader::{Operation, Reply};
use divvy_core::store::{Change, Entry, Key, KeyValueTable, Outcome};

use crate::dice::Dice;
use crate::time::TrueTime;

/// Past values of a key that a stale read may give.
const PAST_MAX: usize = 32;

/// What a key was, and until when.
type Past = VecDeque<(TrueTime, Option<Entry>)>;

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(super) table: KeyValueTable,
    past: Option<BTreeMap<Key, Past>>,
    /// What it will be rolled back to, by the fault that does it.
    snapshots: BTreeMap<usize, KeyValueTable>,
}

impl Store {
    pub(super) fn new(with_past: bool) -> Self {
        Self {
            table: KeyValueTable::default(),
            past: with_past.then(BTreeMap::new),
            snapshots: BTreeMap::new(),
        }
    }

    pub(super) fn remember(&mut self, fault: usize) {
        self.snapshots.insert(fault, self.table.clone());
    }

    /// Goes back to what it was for `fault`, or to nothing.
    pub(super) fn forget(&mut self, fault: usize) {
        self.table = self.snapshots.remove(&fault).unwrap_or_default();
        if let Some(past) = &mut self.past {
            past.clear();
        }
    }

    /// Carries out an operation; gives what it changed.
    pub(super) fn apply(
        &mut self,
        operation: &Operation,
        now: TrueTime,
    ) -> (Reply, Option<Change>) {
        match operation {
            Operation::Get(key) => (Reply::Got(self.table.get(key)), None),
            Operation::List(prefix) => (Reply::Listed(self.table.list(prefix)), None),
            Operation::CompareAndSet {
                key,
                expected,
                value,
            } => {
                let before = self.past_of(key);
                let outcome = self.table.compare_and_set(key, *expected, value);
                let Outcome::Done(revision) = outcome else {
                    return (Reply::Written(Outcome::Conflict), None);
                };
                self.bury(key, before, now);
                let entry = Entry {
                    key: key.clone(),
                    value: std::sync::Arc::clone(value),
                    revision,
                };
                (Reply::Written(outcome), Some(Change::Put(entry)))
            }
            Operation::Delete { key, revision } => {
                let before = self.past_of(key);
                let outcome = self.table.delete(key, *revision);
                let Outcome::Done(revision) = outcome else {
                    return (Reply::Deleted(Outcome::Conflict), None);
                };
                self.bury(key, before, now);
                let change = Change::Deleted(key.clone(), revision);
                (Reply::Deleted(outcome), Some(change))
            }
        }
    }

    /// What a read that goes wrong gives; nothing if there is no past.
    pub(super) fn stale(&self, operation: &Operation, dice: &mut Dice) -> Option<Reply> {
        let past = self.past.as_ref()?;
        let old = |key: &Key, dice: &mut Dice| {
            let values = past.get(key).filter(|values| !values.is_empty())?;
            Some(values[dice.below(values.len())].1.clone())
        };
        match operation {
            Operation::Get(key) => old(key, dice).map(Reply::Got),
            Operation::List(prefix) => {
                let mut entries = Vec::new();
                for entry in self.table.list(prefix) {
                    match dice.chance(0.5) {
                        true => match old(&entry.key, dice) {
                            Some(old) => entries.extend(old),
                            None => entries.push(entry),
                        },
                        false => entries.push(entry),
                    }
                }
                Some(Reply::Listed(entries))
            }
            Operation::CompareAndSet { .. } | Operation::Delete { .. } => None,
        }
    }

    /// What a copy that lags behind shows, as it was then; nothing for writes.
    pub(super) fn as_of(&self, operation: &Operation, then: TrueTime) -> Option<Reply> {
        let past = self.past.as_ref()?;
        let was = |key: &Key| {
            let mut values = past.get(key)?.iter();
            values.find(|(until, _)| *until > then)
        };
        let value = |key: &Key| match was(key) {
            Some((_, value)) => value.clone(),
            None => self.table.get(key),
        };
        match operation {
            Operation::Get(key) => Some(Reply::Got(value(key))),
            Operation::List(prefix) => {
                let now = self.table.list(prefix);
                let now = now.into_iter().map(|entry| entry.key);
                let gone = past.keys().filter(|key| prefix.holds(key)).cloned();
                let keys: BTreeSet<Key> = now.chain(gone).collect();
                Some(Reply::Listed(keys.iter().filter_map(value).collect()))
            }
            Operation::CompareAndSet { .. } | Operation::Delete { .. } => None,
        }
    }

    fn past_of(&self, key: &Key) -> Option<Entry> {
        self.past.as_ref()?;
        self.table.get(key)
    }

    fn bury(&mut self, key: &Key, before: Option<Entry>, now: TrueTime) {
        let Some(past) = &mut self.past else {
            return;
        };
        let values = past.entry(key.clone()).or_default();
        values.push_back((now, before));
        if values.len() > PAST_MAX {
            values.pop_front();
        }
    }
}
