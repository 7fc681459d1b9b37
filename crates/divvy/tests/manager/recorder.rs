//! A store that remembers everything that its members try to write, for the
//! invariants of records.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use divvy::store::{
    Connection, Entry, Expected, Incarnation, Key, KeyValue, Outcome, Prefix, Revision, Store,
    StoreError, StoreErrorKind, Watch,
};
use divvy_sim::{Answer, Attempt, History};
use tokio::sync::watch;

/// Everything that was tried, and what was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    tried: Vec<Attempt>,
    found: BTreeMap<Revision, Entry>,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap()
    }

    /// Adds it to what members said.
    pub(crate) fn tell(&self, history: &mut History) {
        let recorded = self.lock();
        recorded
            .tried
            .iter()
            .for_each(|attempt| history.tried(attempt.clone()));
        recorded
            .found
            .values()
            .for_each(|entry| history.found(entry));
    }

    fn seen(&self, entry: &Entry) {
        let mut recorded = self.lock();
        let seen = recorded.found.entry(entry.revision);
        seen.or_insert_with(|| entry.clone());
    }

    /// Its place, for the answer.
    fn begin(&self, attempt: Attempt) -> usize {
        let mut recorded = self.lock();
        recorded.tried.push(attempt);
        recorded.tried.len() - 1
    }

    fn end(&self, place: usize, outcome: &Result<Outcome<Revision>, StoreError>) {
        self.lock().tried[place].answer = match outcome {
            Ok(Outcome::Done(revision)) => Answer::Made(*revision),
            // It may have been made, or be made later.
            Err(error) if error.kind() == StoreErrorKind::Unknown => Answer::Unknown,
            Ok(Outcome::Conflict) | Err(_) => Answer::Refused,
        };
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

    fn attempt(&self, key: &Key, expected: Expected, value: Option<Arc<[u8]>>) -> usize {
        self.record.begin(Attempt {
            by: self.member,
            sent: divvy::manager::now(),
            key: key.clone(),
            expected,
            value,
            answer: Answer::Unknown,
        })
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

    fn connects(&self) -> u64 {
        self.store.connects()
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
        let attempt = self.attempt(key, expected, Some(value.into()));
        let outcome = self.store.compare_and_set(key, expected, value).await;
        self.record.end(attempt, &outcome);
        outcome
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        self.reach().await;
        let attempt = self.attempt(key, Expected::At(revision), None);
        let outcome = self.store.delete(key, revision).await;
        self.record.end(attempt, &outcome);
        outcome
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
