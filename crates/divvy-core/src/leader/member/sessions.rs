//! The session table of a root to be: indices stay what they are, so that a
//! small change remains a small write.

use std::collections::BTreeMap;

use super::roster::{Candidate, Roster};
use crate::leader::record::{Holding, SessionEntry, SessionId};

/// A session table under construction.
#[derive(Debug, Clone)]
pub(super) struct SessionTable {
    entries: Vec<SessionEntry>,
    is_used: Vec<bool>,
    /// Where a session of a worker stands.
    places: BTreeMap<(SessionId, Box<str>), usize>,
    /// All before it are used.
    first_free: usize,
}

impl SessionTable {
    /// The table of the root before, as far as `holdings` still name it.
    pub(super) fn new(entries: &[SessionEntry], holdings: &[Holding]) -> Self {
        let mut is_used = vec![false; entries.len()];
        for session in holdings.iter().filter_map(Holding::session) {
            is_used[session as usize] = true;
        }
        // The first of those that are there twice, which nobody writes.
        let places = entries.iter().enumerate().rev();
        Self {
            entries: entries.to_vec(),
            is_used,
            places: places
                .map(|(index, entry)| (name_of(entry), index))
                .collect(),
            first_free: 0,
        }
    }

    /// The index of a session, which is added if need be with the revision
    /// that shows it.
    pub(super) fn index_of(&mut self, candidate: &Candidate) -> u32 {
        let name = (candidate.session, candidate.id.clone());
        let index = match self.places.get(&name) {
            Some(index) => *index,
            None => self.add(SessionEntry {
                session: candidate.session,
                worker: candidate.id.clone(),
                seen: candidate.revision,
            }),
        };
        self.is_used[index] = true;
        index as u32
    }

    /// Puts a session where none is needed any more, or at the end.
    fn add(&mut self, entry: SessionEntry) -> usize {
        while self.is_used.get(self.first_free) == Some(&true) {
            self.first_free += 1;
        }
        let index = self.first_free;
        self.places.insert(name_of(&entry), index);
        match self.entries.get_mut(index) {
            Some(free) => {
                let before = std::mem::replace(free, entry);
                let before = name_of(&before);
                if self.places.get(&before) == Some(&index) {
                    self.places.remove(&before);
                }
            }
            None => {
                self.entries.push(entry);
                self.is_used.push(false);
            }
        }
        index
    }

    /// The table, with everybody in it who is there: standbys are chosen from
    /// it.
    pub(super) fn finish(mut self, roster: &Roster) -> Vec<SessionEntry> {
        for candidate in &roster.candidates {
            self.index_of(candidate);
        }
        while self.is_used.last() == Some(&false) {
            self.is_used.pop();
            self.entries.pop();
        }
        self.entries
    }
}

/// Both, because nothing keeps others from writing a session twice.
fn name_of(entry: &SessionEntry) -> (SessionId, Box<str>) {
    (entry.session, entry.worker.clone())
}
