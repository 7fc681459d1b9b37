//! The suite that every store passes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy::store::conformance::{
    Forgetting, Interruption, KeyValueSubject, LeaseSubject, Options, Spoilt, Vandal, key_value,
    leases,
};
use divvy::store::{Key, KeyValue, Leases, StoreError, StoreSettings};
use divvy_testbed::announce;

use crate::scratch::{SOON, Scratch, open, settings};

/// A store in a directory that can be taken away as a whole.
struct Subject {
    scratch: Scratch,
    forgetful: Forgetful,
}

impl Subject {
    fn new() -> Self {
        let subject = Self {
            scratch: Scratch::new(),
            forgetful: Forgetful {
                scratch: Scratch::new(),
            },
        };
        fs::create_dir(subject.here()).unwrap();
        subject
    }

    fn here(&self) -> PathBuf {
        self.scratch.directory().join("here")
    }

    fn away(&self) -> PathBuf {
        self.scratch.directory().join("away")
    }

    async fn client(&self, cluster: &str) -> Result<divvy::store::file::FileStore, StoreError> {
        let settings = StoreSettings {
            cluster: cluster.to_owned(),
            operation_timeout: SOON / 3,
            ping_interval: Duration::from_millis(100),
            reconnect_delay_max: Duration::from_millis(200),
            ..settings()
        };
        open(&self.here().join("divvy.db"), &settings).await
    }
}

#[async_trait]
impl KeyValueSubject for Subject {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError> {
        Ok(Arc::new(self.client(cluster).await?))
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        Some(self)
    }

    fn vandal(&self) -> Option<&dyn Vandal> {
        Some(self)
    }
}

#[async_trait]
impl Vandal for Subject {
    async fn spoil(&self, cluster: &str, key: &Key, with: Spoilt) -> bool {
        if with == Spoilt::OtherType {
            // The table takes nothing but bytes.
            return false;
        }
        let direct = rusqlite::Connection::open(self.here().join("divvy.db")).unwrap();
        direct.busy_timeout(SOON).unwrap();
        let sql = "UPDATE entry SET value = ? WHERE cluster = ? AND key = ?";
        let values = rusqlite::params![with.bytes(), cluster, key.as_str()];
        assert_eq!(direct.execute(sql, values).unwrap(), 1);
        let sql = "INSERT INTO entry (cluster, key, revision, value) VALUES (?, ?, 1, x'')
                   ON CONFLICT DO NOTHING";
        direct.execute(sql, [cluster, "w.no key!"]).unwrap();
        true
    }
}

/// A store that is replaced by a copy, or deleted, while it is used.
struct Forgetful {
    scratch: Scratch,
}

#[async_trait]
impl Forgetting for Forgetful {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        let settings = StoreSettings {
            cluster: cluster.to_owned(),
            restart_quarantine: true,
            ..settings()
        };
        Ok(Arc::new(open(&self.scratch.database(), &settings).await?))
    }

    async fn restart(&self) {
        let copy = self.scratch.directory().join("copy.db");
        let direct = rusqlite::Connection::open(self.scratch.database()).unwrap();
        direct
            .execute("VACUUM INTO ?", [copy.to_str().unwrap()])
            .unwrap();
        drop(direct);
        fs::rename(&copy, self.scratch.database()).unwrap();
    }

    async fn empty(&self) {
        for ending in ["", "-wal", "-shm"] {
            // Before the first case there is none.
            let _missing = fs::remove_file(self.scratch.beside(ending));
        }
    }
}

#[async_trait]
impl LeaseSubject for Subject {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        Ok(Arc::new(self.client(cluster).await?))
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        Some(self)
    }

    fn forgetting(&self) -> Option<&dyn Forgetting> {
        Some(&self.forgetful)
    }
}

#[async_trait]
impl Interruption for Subject {
    async fn interrupt(&self) {
        fs::rename(self.here(), self.away()).unwrap();
    }

    async fn resume(&self) {
        fs::rename(self.away(), self.here()).unwrap();
    }
}

/// Not in a hurry: the machine may do much else.
fn patient(seed: u64) -> Options {
    Options {
        wait: SOON,
        ..Options::seeded(seed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_store_conforms_as_a_key_value_store() {
    for seed in 1..=2 {
        let report = key_value(&Subject::new(), &patient(seed)).await;
        let report = report.expect("it conforms");
        println!("{report}");
        announce(&report.summary());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_store_conforms_as_a_lease_store() {
    for seed in 1..=2 {
        let report = leases(&Subject::new(), &patient(seed)).await;
        let report = report.expect("it conforms");
        println!("{report}");
        announce(&report.summary());
    }
}
