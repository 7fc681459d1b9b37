//! What the store really holds, decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use divvy_core::Moment;
use divvy_core::leader::{Committed, LeaderRecord, RootHead, STRUCK_OUT, WorkerRecord};
use divvy_core::store::{Key, KeyValueTable, Prefix, Revision, decode_part};

use crate::fact::Fact;
use crate::time::TrueTime;

/// A record with the write that brought it.
#[derive(Debug, Clone)]
pub struct Known<T> {
    /// The record.
    pub value: T,
    /// Its write.
    pub revision: Revision,
    /// When that was.
    pub written: TrueTime,
}

/// The records of the store.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// Worker records by stable id.
    pub workers: BTreeMap<Box<str>, Known<WorkerRecord>>,
    /// The leader record.
    pub leader: Option<Known<LeaderRecord>>,
    /// The root.
    pub root: Option<Known<Committed>>,
    /// Worker records that a stranger deleted, as they were, the last one last:
    /// what they proved stays true, also when less is written in their place.
    pub(crate) deleted: BTreeMap<Box<str>, Vec<Known<WorkerRecord>>>,
}

/// A value as what its key says that it is.
#[derive(Debug)]
pub(crate) enum Record {
    Worker(Box<str>, Box<WorkerRecord>),
    Leader(LeaderRecord),
    Root(Box<Committed>),
    /// A chunk, or what operators wish: opaque here.
    Other,
    Garbled(String),
}

/// Who wrote a record, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) by: usize,
    /// The process that sent it is gone.
    pub(crate) orphaned: bool,
    /// Which process of that place it was.
    pub(crate) life: u32,
    /// When it was sent, on the clock of its sender.
    pub(crate) sent: Moment,
    pub(crate) revision: Revision,
}

impl Record {
    /// What is told of it when it has been written under this key.
    pub(crate) fn fact<'a>(&'a self, key: &'a Key, write: &Write) -> Option<Fact<'a>> {
        let (by, revision) = (write.by, write.revision);
        match self {
            Self::Worker(id, record) => Some(Fact::WorkerWritten {
                by,
                orphaned: write.orphaned,
                life: write.life,
                id,
                record,
                revision,
                sent: write.sent,
            }),
            Self::Leader(record) => Some(Fact::LeaderWritten {
                by,
                record,
                revision,
            }),
            Self::Root(root) => Some(Fact::RootWritten { by, root, revision }),
            Self::Garbled(why) => Some(Fact::Garbled { key, why }),
            Self::Other => None,
        }
    }
}

impl Ledger {
    /// A stranger deletes a worker's record.
    pub(crate) fn delete_worker(&mut self, id: &str) {
        if let Some(known) = self.workers.remove(id) {
            self.deleted.entry(id.into()).or_default().push(known);
        }
    }

    /// The record of a worker, and those that were deleted before it, the last
    /// first.
    pub(crate) fn records_of(&self, id: &str) -> impl Iterator<Item = &Known<WorkerRecord>> {
        let deleted = self.deleted.get(id).into_iter().flatten().rev();
        self.workers.get(id).into_iter().chain(deleted)
    }

    /// Reads a value that is about to be entered.
    pub(crate) fn read(
        &self,
        key: &Key,
        value: &[u8],
        chunk: impl Fn(&Key) -> Option<Arc<[u8]>>,
    ) -> Record {
        let text = key.as_str();
        if text == "leader" {
            return match LeaderRecord::decode(value) {
                Ok(record) => Record::Leader(record),
                Err(error) => Record::Garbled(error.to_string()),
            };
        }
        if text == "root" {
            return self.read_root(value, chunk);
        }
        let Some(id) = text.strip_prefix("w.") else {
            return Record::Other;
        };
        let Some(id) = decode_part(id) else {
            return Record::Garbled("a worker record without an id".to_owned());
        };
        if value == STRUCK_OUT {
            // Who had the place before must still be known to have stopped.
            return Record::Other;
        }
        match WorkerRecord::decode(value) {
            Ok(record) => Record::Worker(id.into(), Box::new(record)),
            Err(error) => Record::Garbled(error.to_string()),
        }
    }

    fn read_root(&self, value: &[u8], chunk: impl Fn(&Key) -> Option<Arc<[u8]>>) -> Record {
        let head = match RootHead::decode(value) {
            Ok(head) => head,
            Err(error) => return Record::Garbled(error.to_string()),
        };
        let known = self.root.as_ref().map(|known| &known.value);
        match head.assemble(known, chunk) {
            Ok(committed) => Record::Root(Box::new(committed)),
            Err(error) => Record::Garbled(format!("{error:?}")),
        }
    }

    /// Enters a record that was written.
    pub(crate) fn enter(&mut self, record: Record, revision: Revision, written: TrueTime) {
        match record {
            Record::Worker(id, value) => {
                let known = Known {
                    value: *value,
                    revision,
                    written,
                };
                self.workers.insert(id, known);
            }
            Record::Leader(value) => {
                self.leader = Some(Known {
                    value,
                    revision,
                    written,
                });
            }
            Record::Root(value) => {
                self.root = Some(Known {
                    value: *value,
                    revision,
                    written,
                });
            }
            Record::Other | Record::Garbled(_) => {}
        }
    }

    /// Reads all records anew, from a store that has just forgotten some.
    pub(crate) fn reread(table: &KeyValueTable, now: TrueTime) -> Self {
        let mut ledger = Self::default();
        for entry in table.list(&Prefix::ALL) {
            let record = ledger.read(&entry.key, &entry.value, chunks_of(table));
            ledger.enter(record, entry.revision, now);
        }
        ledger
    }
}

/// The values that a table has.
pub(crate) fn chunks_of(table: &KeyValueTable) -> impl Fn(&Key) -> Option<Arc<[u8]>> {
    |key| table.get(key).map(|entry| Arc::clone(&entry.value))
}
