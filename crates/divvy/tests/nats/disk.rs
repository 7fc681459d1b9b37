//! A server whose disk takes no more.

use std::time::Duration;

use divvy::store::nats::NatsStore;
use divvy::store::{Expected, KeyValue, Prefix, Store, StoreError, StoreErrorKind, StoreSettings};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, until};

use crate::bed::{SOON, assert_refused, create, key, settings, try_open, value};

/// Writes until it is refused. Gives how many were acknowledged, and why the
/// next was not.
async fn fill(store: &NatsStore) -> (usize, StoreError) {
    for written in 0..100 {
        let name = key(&format!("k{written}"));
        let writing = store.compare_and_set(&name, Expected::Absent, &[7; 20_000]);
        match writing.await {
            Ok(outcome) => assert!(outcome.done().is_some()),
            Err(error) => return (written, error),
        }
    }
    panic!("2 MB fit a disk of 300 kB");
}

async fn assert_all_there(store: &NatsStore, written: usize) {
    let found = store.list(&Prefix::ALL).await.unwrap();
    assert_eq!(found.len(), written);
    assert!(found.iter().all(|entry| *entry.value == [7; 20_000]));
}

#[tokio::test]
async fn a_full_disk_ends_writes_in_time_and_loses_nothing_that_was_acknowledged() {
    for version in NatsVersion::SUPPORTED {
        let mut server = NatsServer::start(version, NatsOptions::new()).await;
        let settings = StoreSettings {
            operation_timeout: Duration::from_secs(2),
            ..settings()
        };
        let store = try_open(&server.url(), &settings).await.unwrap();
        server.fill_disk(Some(300_000));
        let (written, error) = fill(&store).await;
        match version {
            // A server of 2.15 does not answer any more, and says why in
            // its log only.
            NatsVersion::Newest => {
                assert_refused(&error, StoreErrorKind::Unknown, &["no answer"]);
                server.until_logged(SOON, "file too large").await;
            }
            _ => assert_refused(&error, StoreErrorKind::Unfit, &["file too large", "10077"]),
        }
        assert!(written > 5, "{written}");
        assert_all_there(&store, written).await;
        assert_eq!(value(&store, "k0").await.unwrap().len(), 20_000);

        let before = store.incarnation().await.unwrap();
        server.stop().await;
        server.start_again().await;
        until(SOON, "it is reached again", async || {
            store.get(&key("k0")).await.is_ok()
        })
        .await;
        // 2.10 drops what is before a write that the disk took in part; that
        // it has another incarnation then is what members go by.
        if version != NatsVersion::Lowest {
            assert_all_there(&store, written).await;
        }
        assert_ne!(store.incarnation().await.unwrap(), before);
        create(&store, "room", b"1").await;
    }
}
