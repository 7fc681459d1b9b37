//! Writers that count together, by compare-and-set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use divvy::store::nats::NatsStore;
use divvy::store::{KeyValue, Outcome, Revision, StoreErrorKind};
use divvy_testbed::until;
use tokio::task::JoinHandle;

use crate::bed::{create, key, try_update};

/// A server that is short of everything may take this long.
const LONG: Duration = Duration::from_secs(60);

/// Writers that increment one key as fast as they can.
pub(crate) struct Counting {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<Told>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    done: AtomicU64,
}

/// What a writer was told: which revision follows which, and how often a
/// write's fate was not known.
#[derive(Default)]
struct Told {
    done: Vec<(Revision, Revision)>,
    unknown: u64,
}

impl Counting {
    pub(crate) async fn start(stores: Vec<NatsStore>) -> Self {
        create(&stores[0], "counter", b"0").await;
        let shared = Arc::new(Shared::default());
        let writer = |store| tokio::spawn(count(store, Arc::clone(&shared)));
        Self {
            writers: stores.into_iter().map(writer).collect(),
            shared,
        }
    }

    /// Waits until so many more writes have been acknowledged.
    pub(crate) async fn until_more(&self, more: u64) {
        let wanted = self.shared.done.load(Ordering::Acquire) + more;
        let reached = async || self.shared.done.load(Ordering::Acquire) >= wanted;
        until(LONG, "acknowledged increments", reached).await;
    }

    /// Ends it: no revision had two successors, and every acknowledged
    /// increment is in the count, which `store` reads.
    pub(crate) async fn assert_exact(self, store: &NatsStore) {
        self.shared.is_over.store(true, Ordering::Release);
        let mut winners: BTreeMap<Revision, Revision> = BTreeMap::new();
        let mut unknown = 0;
        for writer in self.writers {
            let told = writer.await.unwrap();
            unknown += told.unknown;
            for (before, after) in told.done {
                assert!(after > before);
                let other = winners.insert(before, after);
                assert_eq!(other, None, "two writers won at {before}");
            }
        }
        let certain = winners.len() as u64;
        let mut counted = 0;
        until(LONG, "the count", async || {
            let Ok(Some(entry)) = store.get(&key("counter")).await else {
                return false;
            };
            counted = number(&entry.value);
            true
        })
        .await;
        assert!(
            (certain..=certain + unknown).contains(&counted),
            "{certain} certain and {unknown} unknown increments gave {counted}"
        );
    }
}

async fn count(store: NatsStore, shared: Arc<Shared>) -> Told {
    let mut told = Told::default();
    while !shared.is_over.load(Ordering::Acquire) {
        let Ok(Some(now)) = store.get(&key("counter")).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let next = (number(&now.value) + 1).to_string();
        match try_update(&store, "counter", now.revision, next.as_bytes()).await {
            Ok(Outcome::Done(revision)) => {
                told.done.push((now.revision, revision));
                shared.done.fetch_add(1, Ordering::AcqRel);
            }
            Ok(Outcome::Conflict) => {}
            Err(error) if error.kind() == StoreErrorKind::Unknown => told.unknown += 1,
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
        }
    }
    told
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}
