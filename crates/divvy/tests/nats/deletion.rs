//! Deletions and the markers that they leave for a while.

use divvy::store::{KeyValue, Prefix};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, until};

use crate::admin::Admin;
use crate::bed::{SOON, create, done, key, open, try_update, update, value};

#[tokio::test]
async fn a_deleted_key_can_be_created_again_and_its_revisions_go_on() {
    for version in [NatsVersion::Lowest, NatsVersion::Newest] {
        let server = NatsServer::start(version, NatsOptions::new()).await;
        let store = open(&server.url()).await;
        let first = create(&store, "a", b"1").await;
        let gone = done(store.delete(&key("a"), first).await);
        assert_eq!(value(&store, "a").await, None);
        let expecting_deletion = try_update(&store, "a", gone, b"x").await;
        assert!(expecting_deletion.unwrap().is_conflict());
        assert!(store.delete(&key("a"), gone).await.unwrap().is_conflict());
        let second = create(&store, "a", b"2").await;
        assert!(first < gone && gone < second, "{first} {gone} {second}");
        let third = update(&store, "a", second, b"3").await;
        assert!(store.delete(&key("a"), second).await.unwrap().is_conflict());
        done(store.delete(&key("a"), third).await);
    }
}

#[tokio::test]
async fn markers_of_deleted_keys_go_after_a_while_and_values_stay() {
    for version in [NatsVersion::Lowest, NatsVersion::Newest] {
        let server = NatsServer::start(version, NatsOptions::new()).await;
        let store = open(&server.url()).await;
        let admin = Admin::of(&server).await;
        let mut last = create(&store, "kept", b"0").await;
        for number in 0..20 {
            let name = format!("chunk{number}");
            let revision = create(&store, &name, b"chunk").await;
            last = last.max(done(store.delete(&key(&name), revision).await));
        }
        let again = create(&store, "chunk0", b"again").await;
        assert_eq!(admin.messages("divvy").await, 21);
        // Markers that a process left when it ended are found by a listing.
        drop(store);
        let store = open(&server.url()).await;
        assert_eq!(store.list(&Prefix::ALL).await.unwrap().len(), 2);
        until(SOON, "the markers to go", async || {
            admin.messages("divvy").await == 2
        })
        .await;
        assert_eq!(value(&store, "kept").await.unwrap(), b"0");
        assert_eq!(value(&store, "chunk0").await.unwrap(), b"again");
        update(&store, "chunk0", again, b"more").await;
        let new = create(&store, "chunk1", b"new").await;
        assert!(new > last, "{new} is not above {last}");
    }
}
