//! A store that remembers everything that its members have written, for the
//! invariants of records.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use divvy::store::{
    Connection, Entry, Expected, Incarnation, Key, KeyValue, Outcome, Prefix, Revision, Store,
    StoreError, StoreErrorKind, Watch,
};
use divvy_sim::Write;
use tokio::sync::watch;

/// Everything that was written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    writes: BTreeMap<Revision, Write>,
    /// Writes of which it is not known whether they were made.
    open: Vec<Attempt>,
    attempts: u64,
}

#[derive(Debug)]
struct Attempt {
    number: u64,
    write: Write,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap()
    }

    pub(crate) fn writes(&self) -> Vec<Write> {
        self.lock().writes.values().cloned().collect()
    }

    /// A value was found in the store: if nobody knows who wrote it, it was a
    /// write that was never answered.
    pub(crate) fn seen(&self, entry: &Entry) {
        let mut recorded = self.lock();
        if recorded.writes.contains_key(&entry.revision) {
            return;
        }
        let is_it = |attempt: &Attempt| {
            attempt.write.key == entry.key && attempt.write.value == entry.value
        };
        if let Some(place) = recorded.open.iter().position(is_it) {
            let mut write = recorded.open.swap_remove(place).write;
            write.revision = entry.revision;
            recorded.writes.insert(entry.revision, write);
        }
    }

    fn begin(&self, mut write: Write) -> u64 {
        let mut recorded = self.lock();
        recorded.attempts += 1;
        let number = recorded.attempts;
        write.revision = Revision::new(1).unwrap();
        recorded.open.push(Attempt { number, write });
        number
    }

    /// The answer to an attempt is there: with a revision, if it was made.
    fn end(&self, number: u64, made: Option<Revision>) {
        let mut recorded = self.lock();
        let place = recorded.open.iter().position(|open| open.number == number);
        let Some(attempt) = place.map(|place| recorded.open.swap_remove(place)) else {
            return;
        };
        if let Some(revision) = made {
            let mut write = attempt.write;
            write.revision = revision;
            recorded.writes.insert(revision, write);
        }
    }
}

/// The store of one member.
#[derive(Debug)]
pub(crate) struct Recorder {
    store: Arc<dyn KeyValue>,
    member: usize,
    record: Record,
    /// Nothing that it asks for is answered any more.
    is_cut: Arc<AtomicBool>,
}

impl Recorder {
    pub(crate) fn new(
        store: Arc<dyn KeyValue>,
        member: usize,
        record: Record,
        is_cut: Arc<AtomicBool>,
    ) -> Self {
        Self {
            store,
            member,
            record,
            is_cut,
        }
    }

    async fn reach(&self) {
        if self.is_cut.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Store for Recorder {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        self.reach().await;
        self.store.incarnation().await
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.store.connection()
    }

    fn forgets(&self) -> bool {
        self.store.forgets()
    }
}

#[async_trait]
impl KeyValue for Recorder {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        self.reach().await;
        let found = self.store.get(key).await?;
        found.iter().for_each(|entry| self.record.seen(entry));
        Ok(found)
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        self.reach().await;
        let write = Write {
            by: self.member,
            sent: divvy::manager::now(),
            key: key.clone(),
            expected,
            value: value.into(),
            revision: Revision::new(1).unwrap(),
        };
        let number = self.record.begin(write);
        let outcome = self.store.compare_and_set(key, expected, value).await;
        match &outcome {
            Ok(Outcome::Done(revision)) => self.record.end(number, Some(*revision)),
            Ok(Outcome::Conflict) => self.record.end(number, None),
            // It may have been made, or be made later.
            Err(error) if error.kind() == StoreErrorKind::Unknown => {}
            Err(_) => self.record.end(number, None),
        }
        outcome
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        self.reach().await;
        self.store.delete(key, revision).await
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        self.reach().await;
        let found = self.store.list(prefix).await?;
        found.iter().for_each(|entry| self.record.seen(entry));
        Ok(found)
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        self.reach().await;
        self.store.watch(prefix).await
    }

    fn value_bytes_max(&self) -> usize {
        self.store.value_bytes_max()
    }
}
