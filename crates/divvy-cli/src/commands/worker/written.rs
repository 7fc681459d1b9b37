//! A file of everything that a worker tries to write to its store: a line
//! before each attempt and one after it, so that what a killed process had
//! begun is known, too. What it reads tells which attempts without an answer
//! were made.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use async_trait::async_trait;
use divvy::store::{
    Connection, Entry, Expected, Incarnation, Key, KeyValue, Outcome, Prefix, Revision, Store,
    StoreError, StoreErrorKind, StoreSettings, StoreUrl, Watch, open_key_value,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::line::micros;
use crate::failure::Failure;

/// A store that writes down what it is asked to change.
#[derive(Debug)]
pub(super) struct WrittenDown {
    store: Arc<dyn KeyValue>,
    file: File,
    attempts: AtomicU64,
    /// What it has met, by writing or reading it.
    met: Mutex<HashSet<Revision>>,
}

impl WrittenDown {
    /// Opens the store and the file.
    pub(super) async fn open(
        url: &StoreUrl,
        settings: &StoreSettings,
        path: &Path,
    ) -> Result<Arc<dyn KeyValue>, Failure> {
        let named = || format!("--writes {}", path.display());
        let file = File::create(path)
            .with_context(named)
            .map_err(Failure::Failed)?;
        let store = open_key_value(url, settings).await;
        Ok(Arc::new(Self {
            store: store.map_err(|error| Failure::Failed(error.into()))?,
            file,
            attempts: AtomicU64::new(0),
            met: Mutex::default(),
        }))
    }

    /// One call is one line, whoever else writes.
    fn note(&self, line: &Value) -> Result<(), StoreError> {
        let refused = |error: io::Error| {
            let text = format!("the file of --writes takes no more: {error}");
            StoreError::new(StoreErrorKind::Unavailable, text)
        };
        (&self.file)
            .write_all(format!("{line}\n").as_bytes())
            .map_err(refused)
    }

    /// Nothing is sent that is not written down.
    fn begin(
        &self,
        key: &Key,
        expected: Expected,
        value: Option<&[u8]>,
    ) -> Result<u64, StoreError> {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        let expected = match expected {
            Expected::At(revision) => Some(revision.get()),
            Expected::Absent => None,
        };
        self.note(&json!({
            "number": number,
            "at_us": micros(divvy::manager::now()),
            "key": key.as_str(),
            "expected": expected,
            "value": value.map(hexadecimal),
        }))?;
        Ok(number)
    }

    fn is_new(&self, revision: Revision) -> bool {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        met.insert(revision)
    }

    fn found(&self, entry: &Entry) -> Result<(), StoreError> {
        if !self.is_new(entry.revision) {
            return Ok(());
        }
        self.note(&json!({
            "found": entry.revision.get(),
            "key": entry.key.as_str(),
            "value": hexadecimal(&entry.value),
        }))
    }

    fn end(
        &self,
        number: u64,
        outcome: Result<Outcome<Revision>, StoreError>,
    ) -> Result<Outcome<Revision>, StoreError> {
        match &outcome {
            Ok(Outcome::Done(revision)) => {
                self.is_new(*revision);
                self.note(&json!({"number": number, "made": revision.get()}))?;
            }
            // It may have been made, or be made later.
            Err(error) if error.kind() == StoreErrorKind::Unknown => {}
            Ok(Outcome::Conflict) | Err(_) => {
                self.note(&json!({"number": number, "made": null}))?;
            }
        }
        outcome
    }
}

fn hexadecimal(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[async_trait]
impl Store for WrittenDown {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
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
impl KeyValue for WrittenDown {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        let found = self.store.get(key).await?;
        found.iter().try_for_each(|entry| self.found(entry))?;
        Ok(found)
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        let number = self.begin(key, expected, Some(value))?;
        let outcome = self.store.compare_and_set(key, expected, value).await;
        self.end(number, outcome)
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let number = self.begin(key, Expected::At(revision), None)?;
        let outcome = self.store.delete(key, revision).await;
        self.end(number, outcome)
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        let found = self.store.list(prefix).await?;
        found.iter().try_for_each(|entry| self.found(entry))?;
        Ok(found)
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        self.store.watch(prefix).await
    }

    fn value_bytes_max(&self) -> usize {
        self.store.value_bytes_max()
    }
}
