//! Attempts to write, of which some were never answered: which of them were
//! made shows in what came after.

use std::collections::BTreeMap;
use std::sync::Arc;

use divvy_core::Moment;
use divvy_core::store::{Expected, Key, Revision};

use super::written::Write;

/// What is known of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The store has made it, as this write.
    Made(Revision),
    /// The store has not made it.
    Refused,
    /// Nobody knows: there was no answer, or who asked is gone.
    Unknown,
}

/// An attempt to change the value of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Which member's.
    pub by: usize,
    /// When it was sent.
    pub sent: Moment,
    /// Of which key.
    pub key: Key,
    /// What it was to replace.
    pub expected: Expected,
    /// What it was to write; nothing deletes.
    pub value: Option<Arc<[u8]>>,
    /// What came of it.
    pub answer: Answer,
}

impl Attempt {
    fn write(&self, revision: Revision) -> Option<Write> {
        Some(Write {
            by: self.by,
            sent: self.sent,
            key: self.key.clone(),
            expected: self.expected,
            value: Arc::clone(self.value.as_ref()?),
            revision,
        })
    }

    const fn replaces(&self) -> Option<Revision> {
        match self.expected {
            Expected::At(revision) => Some(revision),
            Expected::Absent => None,
        }
    }

    /// Whether it may be what was written then.
    fn may_be(&self, revision: Revision, value: Option<&[u8]>) -> bool {
        let is_same = match (value, &self.value) {
            (Some(found), Some(tried)) => *found == **tried,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let is_open = self.answer == Answer::Unknown;
        is_open && is_same && self.replaces().is_none_or(|before| before < revision)
    }
}

/// A key, and what was written there where that is known.
type Met<'a> = (&'a Key, Option<&'a Arc<[u8]>>);

/// Everything that was tried, and what was found in the store.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    pub(super) tried: Vec<Attempt>,
    pub(super) found: BTreeMap<Revision, (Key, Arc<[u8]>)>,
}

impl Attempts {
    /// What was written. A revision that somebody has met, by reading it or by
    /// having to replace it, was written by somebody: if by nobody who was told
    /// so, by one who was not.
    pub(super) fn writes(&self) -> BTreeMap<Revision, Write> {
        let mut writes = BTreeMap::new();
        for attempt in &self.tried {
            if let Answer::Made(revision) = attempt.answer
                && let Some(write) = attempt.write(revision)
            {
                writes.insert(revision, write);
            }
        }
        let mut open: Vec<_> = self.tried.iter().collect();
        open.retain(|attempt| attempt.answer == Answer::Unknown);
        for (revision, (key, value)) in self.met() {
            if writes.contains_key(&revision) {
                continue;
            }
            // The last that was written before is what it replaced.
            let places = open.iter().enumerate().filter(|(_, attempt)| {
                attempt.key == *key && attempt.may_be(revision, value.map(|value| &**value))
            });
            let place = places
                .max_by_key(|(place, attempt)| (attempt.replaces(), std::cmp::Reverse(*place)));
            let Some((place, _)) = place else { continue };
            writes.extend(
                open.remove(place)
                    .write(revision)
                    .map(|write| (revision, write)),
            );
        }
        writes
    }

    /// Revisions that somebody has met, with their values where these are known.
    fn met(&self) -> BTreeMap<Revision, Met<'_>> {
        let replaced = self.tried.iter().filter_map(|attempt| {
            let revision = attempt.replaces()?;
            Some((revision, (&attempt.key, None)))
        });
        let mut met: BTreeMap<_, _> = replaced.collect();
        let found = self.found.iter();
        met.extend(found.map(|(revision, (key, value))| (*revision, (key, Some(value)))));
        met
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn revision(number: u64) -> Revision {
        Revision::new(number).unwrap()
    }

    fn attempt(by: usize, replaces: Option<u64>, value: &str, answer: Answer) -> Attempt {
        Attempt {
            by,
            sent: Moment::from_origin(Duration::from_secs(by as u64)),
            key: Key::new(["root"]).unwrap(),
            expected: Expected::from(replaces.map(revision)),
            value: Some(value.as_bytes().into()),
            answer,
        }
    }

    fn tried(tried: impl Into<Vec<Attempt>>) -> Attempts {
        Attempts {
            tried: tried.into(),
            ..Attempts::default()
        }
    }

    fn authors(attempts: &Attempts) -> Vec<(u64, usize)> {
        let writes = attempts.writes();
        let writes = writes.values();
        writes
            .map(|write| (write.revision.get(), write.by))
            .collect()
    }

    #[test]
    fn a_write_that_was_replaced_was_made() {
        let mut attempts = tried([
            attempt(0, None, "a", Answer::Made(revision(1))),
            attempt(1, Some(1), "b", Answer::Unknown),
        ]);
        assert_eq!(authors(&attempts), [(1, 0)]);
        // Another has seen it, and lost to a third.
        attempts
            .tried
            .push(attempt(2, Some(5), "c", Answer::Refused));
        assert_eq!(authors(&attempts), [(1, 0), (5, 1)]);
    }

    #[test]
    fn a_write_that_was_found_is_that_of_who_tried_it() {
        let mut attempts = tried([
            attempt(0, None, "a", Answer::Unknown),
            attempt(1, None, "b", Answer::Unknown),
        ]);
        let found = (Key::new(["root"]).unwrap(), b"b"[..].into());
        attempts.found.insert(revision(3), found);
        assert_eq!(authors(&attempts), [(3, 1)]);
    }

    #[test]
    fn what_was_refused_or_deletes_wrote_nothing() {
        let mut deletes = attempt(1, Some(2), "", Answer::Unknown);
        deletes.value = None;
        let attempts = tried([attempt(0, None, "a", Answer::Refused), deletes]);
        assert_eq!(authors(&attempts), []);
    }
}
