//! The record `moves` as a leader knows it: the last moves, and why.

use std::collections::VecDeque;

use crate::moves::{MOVES_BYTES_MAX, MOVES_MAX, MoveEntry};
use crate::store::Revision;

/// What a leader knows of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct MoveLog {
    /// Oldest first.
    pub(crate) entries: VecDeque<MoveEntry>,
    pub(crate) revision: Option<Revision>,
    /// The last so many of them are not written yet.
    pub(crate) unwritten: usize,
    /// Whether the log was read, and writing may begin.
    pub(crate) is_known: bool,
    pub(crate) is_writing: bool,
}

impl MoveLog {
    pub(crate) fn push(&mut self, moves: Vec<MoveEntry>) {
        self.unwritten = (self.unwritten + moves.len()).min(MOVES_MAX);
        self.entries.extend(moves);
        self.cut();
    }

    /// The log turned out to be this: what was not written yet goes behind it.
    pub(crate) fn found(&mut self, revision: Option<Revision>, entries: Vec<MoveEntry>) {
        let written = self.entries.len() - self.unwritten.min(self.entries.len());
        let unwritten = self.entries.split_off(written);
        self.entries = entries.into();
        self.entries.extend(unwritten);
        self.revision = revision;
        self.is_known = true;
        self.cut();
    }

    fn cut(&mut self) {
        let surplus = self.entries.len().saturating_sub(MOVES_MAX);
        self.entries.drain(..surplus);
    }

    /// The record as it is stored: JSON, at most `bytes_max` of it.
    pub(crate) fn encode(&mut self, bytes_max: usize) -> Vec<u8> {
        let bytes_max = bytes_max.min(MOVES_BYTES_MAX);
        loop {
            let entries = self.entries.make_contiguous();
            let bytes = serde_json::to_vec(entries).expect("texts have a JSON form");
            if bytes.len() <= bytes_max || self.entries.is_empty() {
                return bytes;
            }
            let half = self.entries.len().div_ceil(2);
            self.entries.drain(..half);
        }
    }
}
