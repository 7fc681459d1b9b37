//! The reference semantics of a key-value store with compare-and-set.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, Expected, Key, Outcome, Prefix, Revision};

/// A key-value store as a value: what every store must behave like.
///
/// One counter numbers all writes, deletions included, so that a key that is
/// deleted and created anew still goes up.
///
/// ```
/// use divvy_core::store::{Expected, Key, KeyValueTable, Outcome};
///
/// let mut table = KeyValueTable::default();
/// let key = Key::new(["leader"])?;
/// let Outcome::Done(first) = table.compare_and_set(&key, Expected::Absent, b"a") else { panic!() };
/// assert_eq!(table.compare_and_set(&key, Expected::Absent, b"b"), Outcome::Conflict);
/// let Outcome::Done(second) = table.compare_and_set(&key, Expected::At(first), b"c") else { panic!() };
/// assert!(second > first);
/// assert_eq!(*table.get(&key).unwrap().value, *b"c");
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct KeyValueTable {
    entries: BTreeMap<Key, (Arc<[u8]>, Revision)>,
    last: u64,
}

/// What a write did to a key, for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It has a new value.
    Put(Entry),
    /// It is gone, by the write of this revision.
    Deleted(Key, Revision),
}

impl Change {
    /// The key.
    pub const fn key(&self) -> &Key {
        match self {
            Self::Put(entry) => &entry.key,
            Self::Deleted(key, _) => key,
        }
    }

    /// The write.
    pub const fn revision(&self) -> Revision {
        match self {
            Self::Put(entry) => entry.revision,
            Self::Deleted(_, revision) => *revision,
        }
    }
}

impl KeyValueTable {
    /// The value of `key`, if it has one.
    pub fn get(&self, key: &Key) -> Option<Entry> {
        let (value, revision) = self.entries.get(key)?;
        Some(Entry {
            key: key.clone(),
            value: Arc::clone(value),
            revision: *revision,
        })
    }

    /// Writes `value` if `key` is as `expected`.
    pub fn compare_and_set(
        &mut self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Outcome<Revision> {
        let revision = Revision::new(self.last + 1).expect("a count from 1 is not 0");
        match self.entries.get_mut(key) {
            Some((_, at)) if Expected::At(*at) != expected => return Outcome::Conflict,
            None if expected != Expected::Absent => return Outcome::Conflict,
            Some(known) => *known = (value.into(), revision),
            None => {
                self.entries.insert(key.clone(), (value.into(), revision));
            }
        }
        self.last += 1;
        Outcome::Done(revision)
    }

    /// Deletes `key` if its value is still that of `revision`, and gives the
    /// revision of the deletion.
    pub fn delete(&mut self, key: &Key, revision: Revision) -> Outcome<Revision> {
        if self.state_of(key) != Expected::At(revision) {
            return Outcome::Conflict;
        }
        self.entries.remove(key);
        Outcome::Done(self.next_revision())
    }

    /// All keys below `prefix` with their values, in order of their text.
    pub fn list(&self, prefix: &Prefix) -> Vec<Entry> {
        let held = self.entries.iter().filter(|(key, _)| prefix.holds(key));
        held.map(|(key, (value, revision))| Entry {
            key: key.clone(),
            value: Arc::clone(value),
            revision: *revision,
        })
        .collect()
    }

    /// What a conditional write of `key` would have to expect.
    fn state_of(&self, key: &Key) -> Expected {
        self.entries.get(key).map(|(_, revision)| *revision).into()
    }

    fn next_revision(&mut self) -> Revision {
        self.last += 1;
        Revision::new(self.last).expect("a count from 1 is not 0")
    }
}
