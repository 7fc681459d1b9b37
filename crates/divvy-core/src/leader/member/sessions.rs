//! The session table of a root to be: indices stay what they are, so that a
//! small change remains a small write.

use super::roster::{Candidate, Roster};
use crate::leader::record::{Holding, SessionEntry};

/// A session table under construction.
#[derive(Debug, Clone)]
pub(super) struct SessionTable {
    entries: Vec<SessionEntry>,
    is_used: Vec<bool>,
}

impl SessionTable {
    /// The table of the root before, as far as `holdings` still name it.
    pub(super) fn new(entries: &[SessionEntry], holdings: &[Holding]) -> Self {
        let mut is_used = vec![false; entries.len()];
        for holding in holdings {
            if let Holding::Held { session, .. } | Holding::Revoking { session, .. } = holding {
                is_used[*session as usize] = true;
            }
        }
        Self {
            entries: entries.to_vec(),
            is_used,
        }
    }

    /// The index of a session, which is added if need be with the revision
    /// that shows it.
    pub(super) fn index_of(&mut self, candidate: &Candidate) -> u32 {
        let session = candidate.session;
        let known = self
            .entries
            .iter()
            .position(|entry| entry.session == session);
        let index = known.unwrap_or_else(|| {
            let entry = SessionEntry {
                session,
                worker: candidate.id.clone(),
                seen: candidate.revision,
            };
            match self.is_used.iter().position(|used| !used) {
                Some(free) => {
                    self.entries[free] = entry;
                    free
                }
                None => {
                    self.entries.push(entry);
                    self.is_used.push(false);
                    self.entries.len() - 1
                }
            }
        });
        self.is_used[index] = true;
        index as u32
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
