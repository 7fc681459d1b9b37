//! What members wrote to a real store, replayed in the order in which it took
//! effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use divvy_core::Moment;
use divvy_core::store::{Expected, Key, Revision};

use crate::fact::Fact;
use crate::invariants::Broken;
use crate::ledger::{Ledger, Record};
use crate::time::TrueTime;

/// A write that a store has accepted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Write {
    /// Which member's.
    pub(super) by: usize,
    /// When it was sent.
    pub(super) sent: Moment,
    /// Of which key.
    pub(super) key: Key,
    /// What it was to replace.
    pub(super) expected: Expected,
    /// What it wrote.
    pub(super) value: Arc<[u8]>,
    /// Which write of the store it is: stores count all of them together.
    pub(super) revision: Revision,
}

/// Writes in their order, each with the earliest moment at which it can have
/// taken effect: not before it was sent, nor before the one before it.
///
/// Whoever acts on a write has seen it, and so waits from a later moment on;
/// waits that are judged by these moments are never found too short wrongly.
pub(super) fn in_order(writes: &BTreeMap<Revision, Write>) -> Vec<(Moment, &Write)> {
    let mut earliest = Moment::default();
    let timed = writes.values().map(|write| {
        earliest = earliest.max(write.sent);
        (earliest, write)
    });
    timed.collect()
}

/// The store as the writes so far have made it.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) ledger: Ledger,
    values: BTreeMap<Key, Arc<[u8]>>,
}

impl Replay {
    /// Tells what a write is, and enters it.
    pub(super) fn apply(
        &mut self,
        at: TrueTime,
        write: &Write,
        mut tell: impl FnMut(&Fact<'_>, &Ledger) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let Write {
            by,
            key,
            value,
            revision,
            ..
        } = write;
        let (by, revision, bytes) = (*by, *revision, value.len());
        tell(&Fact::Stored { key, bytes }, &self.ledger)?;
        let chunk = |key: &Key| self.values.get(key).cloned();
        let record = self.ledger.read(key, value, chunk);
        match &record {
            Record::Worker(id, record) => {
                let fact = Fact::WorkerWritten {
                    by,
                    orphaned: false,
                    life: 0,
                    id,
                    record,
                    revision,
                    sent: write.sent,
                };
                tell(&fact, &self.ledger)?;
            }
            Record::Leader(record) => {
                let fact = Fact::LeaderWritten {
                    by,
                    record,
                    revision,
                };
                tell(&fact, &self.ledger)?;
            }
            Record::Root(root) => {
                self.derives(write)?;
                tell(&Fact::RootWritten { by, root, revision }, &self.ledger)?;
            }
            Record::Garbled(why) => tell(&Fact::Garbled { key, why }, &self.ledger)?,
            Record::Other => {}
        }
        self.values.insert(key.clone(), Arc::clone(value));
        self.ledger.enter(record, revision, at);
        Ok(())
    }

    /// A root names the one before it, or it was not made from that.
    fn derives(&self, write: &Write) -> Result<(), Broken> {
        let before = self.ledger.root.as_ref().map(|known| known.revision);
        if write.expected == Expected::from(before) {
            return Ok(());
        }
        Err(Broken {
            invariant: "I3",
            property: "each commit derives from its predecessor",
            seen: format!(
                "the root of revision {} replaces {:?}, and the last one that was recorded is {before:?}",
                write.revision, write.expected
            ),
        })
    }
}
