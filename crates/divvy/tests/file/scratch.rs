//! A directory of a test's own, with a store in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use divvy::store::file::FileStore;
use divvy::store::{
    Claim, Expected, Key, KeyValue, LeaseKey, LeaseName, Nonce, Outcome, Revision, StoreError,
    StoreSettings, StoreUrl,
};
use tempfile::TempDir;

/// Longer than anything here takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Scratch {
    directory: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.directory().join("divvy.db")
    }

    /// A file beside the database.
    pub(crate) fn beside(&self, ending: &str) -> PathBuf {
        self.directory().join(format!("divvy.db{ending}"))
    }

    pub(crate) async fn open(&self) -> FileStore {
        open(&self.database(), &settings()).await.unwrap()
    }
}

pub(crate) async fn open(path: &Path, settings: &StoreSettings) -> Result<FileStore, StoreError> {
    FileStore::open(&url(path), settings).await
}

pub(crate) fn url(path: &Path) -> StoreUrl {
    format!("file:{}", path.display()).parse().unwrap()
}

/// Patient, silent and without quarantine.
pub(crate) fn settings() -> StoreSettings {
    StoreSettings {
        connect_timeout: SOON,
        operation_timeout: SOON,
        ping_interval: Duration::from_mins(1),
        restart_quarantine: false,
        ..StoreSettings::default()
    }
}

/// The same, but not patient.
pub(crate) fn hasty() -> StoreSettings {
    StoreSettings {
        connect_timeout: Duration::from_millis(100),
        operation_timeout: Duration::from_millis(100),
        ..settings()
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::new([name]).unwrap()
}

pub(crate) fn worker(name: &str) -> LeaseName {
    LeaseName::new("worker", name).unwrap()
}

pub(crate) fn claim(number: u32, nonce: u128) -> Claim {
    Claim {
        key: LeaseKey::new("orders", number).unwrap(),
        nonce: Nonce::new(nonce),
    }
}

/// Writes a key that is as expected.
pub(crate) async fn put(
    store: &FileStore,
    name: &str,
    expected: Expected,
    value: &[u8],
) -> Revision {
    let written = store.compare_and_set(&key(name), expected, value).await;
    match written.unwrap() {
        Outcome::Done(revision) => revision,
        Outcome::Conflict => panic!("{name} is not as expected"),
    }
}

/// Writes a key that is not there.
pub(crate) async fn create(store: &FileStore, name: &str, value: &[u8]) {
    put(store, name, Expected::Absent, value).await;
}
