//! The suite on the stores in memory, which are the reference.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use divvy::store::conformance::{
    KeyValueSubject, LeaseSubject, Options, Spoilt, Vandal, key_value, leases,
};
use divvy::store::{Expected, Key, KeyValue, Leases, MemoryKeyValue, MemoryLeases, StoreError};
use divvy_testbed::announce;

/// A key-value store in memory has one cluster; several are several stores.
#[derive(Default)]
struct KeyValues(Mutex<BTreeMap<String, MemoryKeyValue>>);

#[async_trait]
impl KeyValueSubject for KeyValues {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError> {
        let mut stores = self.0.lock().unwrap();
        let store = stores.entry(cluster.to_owned()).or_default();
        Ok(Arc::new(store.clone()))
    }

    fn vandal(&self) -> Option<&dyn Vandal> {
        Some(self)
    }
}

#[async_trait]
impl Vandal for KeyValues {
    async fn spoil(&self, cluster: &str, key: &Key, with: Spoilt) -> bool {
        let store = self.open(cluster).await.unwrap();
        let found = store.get(key).await.unwrap().unwrap();
        let at = Expected::At(found.revision);
        let written = store.compare_and_set(key, at, with.bytes()).await;
        written.unwrap().done().is_some()
    }
}

struct Memory(MemoryLeases);

#[async_trait]
impl LeaseSubject for Memory {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        Ok(Arc::new(self.0.of_cluster(cluster)?))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn key_values_in_memory_conform() {
    for seed in 1..=8 {
        let report = key_value(&KeyValues::default(), &Options::seeded(seed)).await;
        let report = report.expect("the reference conforms");
        println!("{report}");
        announce(&report.summary());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn leases_in_memory_conform_in_real_time() {
    let subject = Memory(MemoryLeases::new("any").unwrap());
    // Twice on one store: a run leaves nothing that disturbs another.
    for seed in 1..=2 {
        let report = leases(&subject, &Options::seeded(seed)).await;
        let report = report.expect("the reference conforms");
        println!("{report}");
        announce(&report.summary());
    }
}

#[tokio::test(start_paused = true)]
async fn leases_in_memory_conform_in_stepped_time() {
    for seed in 1..=8 {
        let subject = Memory(MemoryLeases::new("any").unwrap());
        let report = leases(&subject, &Options::seeded(seed)).await;
        report.expect("the reference conforms");
    }
}
