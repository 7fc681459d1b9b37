//! What operations come to at the store, and what strangers write there.

use std::sync::Arc;

use divvy_core::leader::{Operation, Reply};
use divvy_core::store::{Change, Expected, Key, Outcome, Prefix, Revision, decode_part};

use super::machine::describe_root;
use super::{LeaderMode, World};
use crate::coverage::Mishap;
use crate::fact::{Disturbed, Fact};
use crate::invariants::Broken;
use crate::ledger::{Record, Write, chunks_of};
use crate::time::TrueTime;
use crate::world::Coordination as _;

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
        let lag = LeaderMode::lag(self, request.member);
        let then = self.now.elapsed().saturating_sub(lag);
        let then = TrueTime::ZERO + then;
        if !lag.is_zero()
            && let Some(shown) = self.store.as_of(&request.operation, then)
        {
            self.count(Mishap::LaggingRead);
            return Ok(shown);
        }
        let (reply, change) = self.store.apply(&request.operation, self.now);
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
        if let (_, Some(change)) = self.store.apply(&operation, self.now) {
            self.spread(&Arc::new(change));
        }
    }

    /// A stranger deletes one key: a record, who leads, or the root.
    pub(super) fn delete_key(&mut self, what: usize, is_shown: bool) -> Result<(), Broken> {
        let entries = self.store.table.list(&Prefix::ALL);
        let keys = entries.iter().map(|entry| (&entry.key, entry.revision));
        // Without a chunk no root could be read any more.
        let keys: Vec<_> = keys
            .filter(|(key, _)| !key.as_str().starts_with("c."))
            .collect();
        let Some((key, revision)) = keys.get(what % keys.len().max(1)) else {
            return Ok(());
        };
        let (key, revision) = ((*key).clone(), *revision);
        self.count(Mishap::KeyDeleted);
        self.note(|| format!("a stranger deletes {key}"));
        match key.as_str() {
            "leader" => self.ledger.leader = None,
            "root" => self.ledger.root = None,
            worker => {
                if let Some(id) = worker.strip_prefix("w.").and_then(decode_part) {
                    self.ledger.delete_worker(&id);
                    // An id that no root names yet is given away at once:
                    // nothing was granted to who had it.
                    self.tell(&Fact::Disturbed {
                        whose: Disturbed::Sessions,
                        until: self.now + self.frame().lease * 2,
                    })?;
                }
            }
        }
        let operation = Operation::Delete { key, revision };
        if let (_, Some(change)) = self.store.apply(&operation, self.now)
            && is_shown
        {
            self.spread(&Arc::new(change));
        }
        Ok(())
    }
}
