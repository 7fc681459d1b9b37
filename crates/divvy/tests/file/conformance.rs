//! The suite that every store passes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy::store::conformance::{
    Interruption, KeyValueSubject, LeaseSubject, Options, key_value, leases,
};
use divvy::store::{KeyValue, Leases, StoreError, StoreSettings};
use divvy_testbed::announce;

use crate::scratch::{SOON, Scratch, open, settings};

/// A store in a directory that can be taken away as a whole.
struct Subject {
    scratch: Scratch,
}

impl Subject {
    fn new() -> Self {
        let subject = Self {
            scratch: Scratch::new(),
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
}

#[async_trait]
impl LeaseSubject for Subject {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        Ok(Arc::new(self.client(cluster).await?))
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        Some(self)
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
