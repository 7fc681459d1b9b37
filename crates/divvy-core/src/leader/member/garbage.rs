//! Chunks that no root names any more.

use std::collections::BTreeMap;

use super::Member;
use super::operations::Purpose;
use super::timers::Timer;
use crate::leader::action::Operation;
use crate::leader::codec::chunk_version;
use crate::leader::event::Reply;
use crate::moment::Moment;
use crate::store::{Key, Revision};

/// All chunks that are known to be there.
#[derive(Debug, Clone, Default)]
pub(super) struct Garbage {
    known: BTreeMap<Key, Chunk>,
}

#[derive(Debug, Clone)]
struct Chunk {
    revision: Revision,
    /// When it may be deleted, if no root names it.
    due: Option<Moment>,
}

impl Garbage {
    pub(super) fn written(&mut self, key: Key, revision: Revision) {
        let chunk = Chunk {
            revision,
            due: None,
        };
        self.known.insert(key, chunk);
    }
}

impl Member {
    pub(super) fn chunks_listed(&mut self, reply: Reply) {
        let Some(leading) = &mut self.leading else {
            return;
        };
        if let Reply::Listed(entries) = reply {
            for entry in entries {
                leading.garbage.written(entry.key, entry.revision);
            }
            self.find_garbage();
        }
    }

    /// Marks what the root does not name. At or below its version, nothing
    /// ever will again.
    pub(super) fn find_garbage(&mut self) {
        let Some(base) = self.base_committed() else {
            return;
        };
        let Some(leading) = self
            .leading
            .as_mut()
            .filter(|l| !l.garbage.known.is_empty())
        else {
            return;
        };
        let due = self.clock.now + self.setup.settings.heartbeat_ttl * 2;
        let named = base.chunk_keys();
        for (key, chunk) in &mut leading.garbage.known {
            let is_old = chunk_version(key).is_some_and(|version| version <= base.root.version);
            if named.contains(key) || !is_old {
                chunk.due = None;
            } else if chunk.due.is_none() {
                chunk.due = Some(due);
                self.timers.set_earlier(Timer::Garbage, due);
            }
        }
    }

    pub(super) fn delete_garbage(&mut self) {
        let now = self.clock.now;
        let most = self.setup.batches.deletes;
        let Some(leading) = &mut self.leading else {
            return;
        };
        let known = &mut leading.garbage.known;
        let is_due = |_: &Key, chunk: &mut Chunk| chunk.due.is_some_and(|due| due <= now);
        let old: Vec<(Key, Chunk)> = known.extract_if(.., is_due).take(most).collect();
        if let Some(next) = known.values().filter_map(|chunk| chunk.due).min() {
            let soon = now + self.setup.settings.heartbeat_interval / 4;
            self.timers.set(Timer::Garbage, next.max(soon));
        }
        let timeout = self.setup.settings.operation_timeout;
        for (key, chunk) in old {
            let operation = Operation::Delete {
                key,
                revision: chunk.revision,
            };
            self.operate(operation, Purpose::DeleteChunk, timeout);
        }
    }
}
