//! What operations come to at the store, and what strangers write there.

use std::sync::Arc;

use divvy_core::leader::{Operation, Reply};
use divvy_core::store::{Change, Expected, Key, Outcome, Prefix, Revision};

use super::machine::describe_root;
use super::{LeaderMode, World};
use crate::coverage::Mishap;
use crate::fact::Fact;
use crate::invariants::Broken;
use crate::ledger::{Record, Write, chunks_of};

type Request = crate::world::Request<LeaderMode>;

impl World {
    /// Carries out an operation, or fails to in one of the ways of the weather.
    pub(super) fn apply(&mut self, request: &Request) -> Result<Reply, Broken> {
        let is_write = matches!(request.operation, Operation::CompareAndSet { .. });
        if is_write && self.dice.chance(self.weather.spurious) {
            self.count(Mishap::SpuriousConflict);
            self.note(|| format!("store m{}: conflict with nobody", request.member));
            return Ok(Reply::Written(Outcome::Conflict));
        }
        if !is_write
            && self.dice.chance(self.weather.stale)
            && let Some(stale) = self.store.stale(&request.operation, &mut self.dice)
        {
            self.count(Mishap::StaleRead);
            self.note(|| format!("store m{}: a stale read", request.member));
            return Ok(stale);
        }
        let (reply, change) = self.store.apply(&request.operation);
        if let Some(change) = change {
            if let Change::Put(entry) = &change {
                let (key, revision) = (&entry.key, entry.revision);
                self.written(request, key, &entry.value, revision)?;
            }
            self.spread(&Arc::new(change));
        }
        Ok(reply)
    }

    /// A value was written: what it is, and whether that may be.
    fn written(
        &mut self,
        request: &Request,
        key: &Key,
        value: &[u8],
        revision: Revision,
    ) -> Result<(), Broken> {
        let by = request.member;
        self.note(|| format!("store m{by}: {key} is at revision {revision}"));
        let bytes = value.len();
        self.tell(&Fact::Stored { key, bytes })?;
        let record = self.ledger.read(key, value, chunks_of(&self.store.table));
        if let Record::Root(root) = &record {
            self.note(|| describe_root(root));
            self.count_moves(root);
        }
        let write = Write {
            by,
            orphaned: !self.is_current(request),
            life: request.generation,
            sent: request.sent,
            revision,
        };
        if let Some(fact) = record.fact(key, &write) {
            self.tell(&fact)?;
        }
        self.ledger.enter(record, revision, self.now);
        Ok(())
    }

    /// A stranger writes what is no record. The ledger keeps what was there: it
    /// is who held the place before that must be known to have stopped.
    pub(super) fn scribble(&mut self, what: usize) {
        self.count(Mishap::Scribble);
        let entries = self.store.table.list(&Prefix::ALL);
        let records = entries.iter().filter(|entry| {
            let key = entry.key.as_str();
            // A root or a chunk that is lost cannot be made up for.
            key != "root" && !key.starts_with("c.")
        });
        let records: Vec<_> = records.collect();
        let stranger = Key::new(["w", "stranger"]).expect("a valid key");
        let target = records.get(what % (records.len() + 1));
        let (key, expected, mut value) = match target {
            Some(entry) => {
                let expected = Expected::from(Some(entry.revision));
                (entry.key.clone(), expected, entry.value.to_vec())
            }
            None => (stranger, Expected::Absent, b"hello".to_vec()),
        };
        match what / 7 % 3 {
            0 => value.truncate(value.len() / 2),
            1 => value.iter_mut().for_each(|byte| *byte ^= 0x55),
            _ => value.clear(),
        }
        self.note(|| format!("a stranger writes over {key}"));
        if key.as_str() == "leader" {
            // Nobody can tell any more which epoch it was.
            self.ledger.leader = None;
        }
        let operation = Operation::CompareAndSet {
            key,
            expected,
            value: value.into(),
        };
        if let (_, Some(change)) = self.store.apply(&operation) {
            self.spread(&Arc::new(change));
        }
    }
}
