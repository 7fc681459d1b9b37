//! Large values and many keys.

use divvy::store::{
    ChunkManifest, Expected, Key, KeyValue, Prefix, StoreErrorKind, VALUE_BYTES_MAX,
};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion};

use crate::admin::Admin;
use crate::bed::{assert_refused, create, done, key, newest, open, value};

const KEYS: usize = 10_000;

#[tokio::test]
async fn a_server_with_small_messages_is_read_and_a_large_value_travels_in_chunks() {
    let options = NatsOptions::new().max_payload(64 * 1024);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let store = open(&server.url()).await;
    let most = store.value_bytes_max();
    assert_eq!(most, 32 * 1024);
    let error = store
        .compare_and_set(&key("a"), Expected::Absent, &vec![0; most + 1])
        .await
        .unwrap_err();
    assert_refused(&error, StoreErrorKind::Invalid, &["32769", "32768"]);

    let large: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
    let (manifest, chunks) = ChunkManifest::split(&large, most).unwrap();
    for (index, chunk) in chunks.iter().enumerate() {
        create(&store, &format!("chunk{index}"), chunk).await;
    }
    let mut read = Vec::new();
    for index in 0..manifest.count() {
        read.push(value(&store, &format!("chunk{index}")).await.unwrap());
    }
    assert_eq!(manifest.join(&read).unwrap(), large);
}

#[tokio::test]
async fn an_ordinary_server_takes_the_largest_value() {
    let server = newest().await;
    let store = open(&server.url()).await;
    assert_eq!(store.value_bytes_max(), VALUE_BYTES_MAX);
    create(&store, "a", &vec![7; VALUE_BYTES_MAX]).await;
    assert_eq!(
        store.list(&Prefix::ALL).await.unwrap()[0].value.len(),
        VALUE_BYTES_MAX
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_keys_are_listed_within_an_operation_also_while_they_change() {
    for version in [NatsVersion::Lowest, NatsVersion::Newest] {
        list_ten_thousand(NatsServer::start(version, NatsOptions::new()).await).await;
    }
}

async fn list_ten_thousand(server: NatsServer) {
    let store = open(&server.url()).await;
    let name = |index: usize| Key::new(["w", &format!("{index:05}")]).unwrap();
    let mut writing = Vec::new();
    for part in 0..50 {
        let store = store.clone();
        writing.push(tokio::spawn(async move {
            for index in (part..KEYS).step_by(50) {
                let name = name(index);
                done(
                    store
                        .compare_and_set(&name, Expected::Absent, b"a value of some length")
                        .await,
                );
            }
        }));
    }
    for writer in writing {
        writer.await.unwrap();
    }
    let prefix = Prefix::below(key("w"));
    let listed = store.list(&prefix).await.unwrap();
    assert_eq!(listed.len(), KEYS);
    assert!(listed.is_sorted_by_key(|entry| &entry.key));

    let changing = tokio::spawn({
        let (store, listed) = (store.clone(), listed.clone());
        async move {
            for entry in &listed[..500] {
                let deleted = store.delete(&entry.key, entry.revision).await;
                assert!(deleted.unwrap().done().is_some());
            }
        }
    });
    while !changing.is_finished() {
        let now = store.list(&prefix).await.unwrap();
        assert!((KEYS - 500..=KEYS).contains(&now.len()), "{}", now.len());
        assert_eq!(now[now.len() - 1], listed[KEYS - 1]);
    }
    changing.await.unwrap();
    assert_eq!(store.list(&prefix).await.unwrap().len(), KEYS - 500);
    assert!(
        Admin::of(&server).await.consumers("divvy").await <= 1,
        "listings leave nothing"
    );
}
