//! Servers that stop, pause, forget, and answers that come late.

use std::time::Duration;

use divvy::store::nats::NatsStore;
use divvy::store::{Expected, KeyValue, Prefix, Store, StoreErrorKind, StoreSettings};
use divvy_testbed::{Proxy, until, until_some};
use tokio::time::timeout;

use crate::bed::{
    SOON, assert_refused, create, key, newest, open, settings, try_open, try_update, update, value,
};
use crate::counting::Counting;

/// A store whose operations fail soon.
async fn hasty(url: &str) -> NatsStore {
    let settings = StoreSettings {
        operation_timeout: Duration::from_millis(250),
        ..settings()
    };
    try_open(url, &settings).await.unwrap()
}

async fn until_reached(store: &NatsStore) {
    until(SOON, "the server to be reached again", async || {
        store.get(&key("probe")).await.is_ok()
    })
    .await;
}

/// No operation may take longer than this, whatever the server does.
async fn bounded<T>(operation: impl Future<Output = T>) -> T {
    let ended = timeout(Duration::from_secs(5), operation).await;
    ended.expect("an operation ends within its timeout")
}

#[tokio::test]
async fn operations_on_a_paused_server_end_in_time_and_work_again_afterwards() {
    let server = newest().await;
    let store = hasty(&server.url()).await;
    let revision = create(&store, "a", b"1").await;
    server.pause();
    let read = bounded(store.get(&key("a"))).await.unwrap_err();
    assert_refused(
        &read,
        StoreErrorKind::Unavailable,
        &["get 'a'", "no answer"],
    );
    let written = bounded(try_update(&store, "a", revision, b"2"))
        .await
        .unwrap_err();
    assert_refused(
        &written,
        StoreErrorKind::Unknown,
        &["compare_and_set 'a'", "no answer"],
    );
    let deleted = bounded(store.delete(&key("b"), revision))
        .await
        .unwrap_err();
    assert_eq!(deleted.kind(), StoreErrorKind::Unknown, "{deleted}");
    let listed = bounded(store.list(&Prefix::ALL)).await.unwrap_err();
    assert_eq!(listed.kind(), StoreErrorKind::Unavailable, "{listed}");
    let mut connection = store.connection();
    let noticed = timeout(SOON, connection.wait_for(|now| !now.up)).await;
    let lost = noticed
        .expect("the silence is noticed")
        .unwrap()
        .lost_by
        .clone();
    assert!(lost.is_some());
    server.resume();
    until_reached(&store).await;
    assert!(store.connection().borrow().connects >= 2);
    // The write may have been applied late, and then once.
    let now = store.get(&key("a")).await.unwrap().unwrap();
    assert!(*now.value == *b"1" || *now.value == *b"2");
    update(&store, "a", now.revision, b"3").await;
}

#[tokio::test]
async fn without_a_connection_operations_fail_at_once_and_are_surely_not_sent() {
    let mut server = newest().await;
    let slow = StoreSettings {
        operation_timeout: Duration::from_secs(30),
        ..settings()
    };
    let store = try_open(&server.url(), &slow).await.unwrap();
    let revision = create(&store, "a", b"1").await;
    server.kill();
    let mut connection = store.connection();
    let down = timeout(SOON, connection.wait_for(|now| !now.up)).await;
    drop(down.expect("the end is noticed").unwrap());
    let written = bounded(try_update(&store, "a", revision, b"2"))
        .await
        .unwrap_err();
    assert_refused(&written, StoreErrorKind::Unavailable, &["not connected"]);
    let read = bounded(store.get(&key("a"))).await.unwrap_err();
    assert_refused(&read, StoreErrorKind::Unavailable, &["not connected"]);
    bounded(store.list(&Prefix::ALL)).await.unwrap_err();
    bounded(store.watch(&Prefix::ALL)).await.unwrap_err();
    bounded(store.incarnation()).await.unwrap_err();
    server.start_again().await;
    until_reached(&store).await;
    update(&store, "a", revision, b"3").await;
}

#[tokio::test]
async fn a_write_whose_connection_is_cut_is_unknown_and_found_by_reading() {
    let server = newest().await;
    let proxy = Proxy::start(server.address()).await;
    let store = open(&format!("nats://{}", proxy.address())).await;
    let revision = create(&store, "a", b"1").await;
    proxy.hold_replies();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { try_update(&store, "a", revision, b"2").await }
    });
    until(SOON, "an answer to be held", async || {
        proxy.replies_held() > 0
    })
    .await;
    proxy.cut();
    let error = writing.await.unwrap().unwrap_err();
    assert_refused(
        &error,
        StoreErrorKind::Unknown,
        &["the connection was lost"],
    );
    proxy.pass();
    until_reached(&store).await;
    let read = until_some(SOON, "the write", async || store.get(&key("a")).await.ok());
    assert_eq!(*read.await.unwrap().value, *b"2");
}

#[tokio::test]
async fn a_write_that_arrives_late_never_breaks_compare_and_set() {
    let server = newest().await;
    let proxy = Proxy::start(server.address()).await;
    let late = hasty(&format!("nats://{}", proxy.address())).await;
    let direct = open(&server.url()).await;
    let lost = create(&late, "lost", b"0").await;
    let kept = create(&late, "kept", b"0").await;
    proxy.hold_requests();
    for (name, revision) in [("lost", lost), ("kept", kept)] {
        let written = try_update(&late, name, revision, b"late").await;
        assert_refused(
            &written.unwrap_err(),
            StoreErrorKind::Unknown,
            &["no answer"],
        );
    }
    let created = late
        .compare_and_set(&key("new"), Expected::Absent, b"late")
        .await;
    assert_eq!(created.unwrap_err().kind(), StoreErrorKind::Unknown);
    // Another writer is first at two of the three keys.
    let newer = update(&direct, "lost", lost, b"first").await;
    let first = create(&direct, "new", b"first").await;
    proxy.release();
    until(SOON, "the late write", async || {
        value(&direct, "kept").await.unwrap() == b"late"
    })
    .await;
    assert_eq!(value(&direct, "lost").await.unwrap(), b"first");
    assert_eq!(value(&direct, "new").await.unwrap(), b"first");
    update(&direct, "lost", newer, b"second").await;
    update(&direct, "new", first, b"second").await;
    until_reached(&late).await;
    assert!(
        try_update(&late, "kept", kept, b"x")
            .await
            .unwrap()
            .is_conflict()
    );
}

#[tokio::test]
async fn a_restarted_server_has_its_data_and_another_incarnation() {
    let mut server = newest().await;
    let store = open(&server.url()).await;
    let before = store.incarnation().await.unwrap();
    assert_eq!(store.incarnation().await.unwrap(), before);
    assert_eq!(
        open(&server.url()).await.incarnation().await.unwrap(),
        before
    );
    let revision = create(&store, "a", b"1").await;
    let connects = store.connects();
    server.kill();
    server.start_again().await;
    until_reached(&store).await;
    assert!(store.connects() > connects, "it is known with the answer");
    assert_eq!(value(&store, "a").await.unwrap(), b"1");
    assert_ne!(store.incarnation().await.unwrap(), before);
    let later = update(&store, "a", revision, b"2").await;
    assert!(later > revision);
}

#[tokio::test]
async fn a_server_replaced_by_an_empty_one_has_another_incarnation_and_no_old_revision() {
    let mut server = newest().await;
    let store = open(&server.url()).await;
    let before = store.incarnation().await.unwrap();
    let revision = create(&store, "a", b"1").await;
    server.kill();
    server.start_empty().await;
    until_reached(&store).await;
    assert_ne!(store.incarnation().await.unwrap(), before);
    assert_eq!(value(&store, "a").await, None);
    assert!(
        try_update(&store, "a", revision, b"2")
            .await
            .unwrap()
            .is_conflict()
    );
    assert!(create(&store, "a", b"3").await > revision);
}

#[tokio::test]
async fn an_orderly_shutdown_is_reported_and_survived() {
    let mut server = newest().await;
    let store = open(&server.url()).await;
    let mut connection = store.connection();
    assert_eq!(connection.borrow_and_update().connects, 1);
    server.stop().await;
    let down = timeout(SOON, connection.wait_for(|now| !now.up)).await;
    assert!(down.unwrap().unwrap().lost_by.is_some());
    server.start_again().await;
    let up = timeout(SOON, connection.wait_for(|now| now.up)).await;
    assert_eq!(up.unwrap().unwrap().connects, 2);
    create(&store, "a", b"1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn increments_under_pauses_and_cuts_are_counted_exactly() {
    let server = newest().await;
    let proxy = Proxy::start(server.address()).await;
    let url = format!("nats://{}", proxy.address());
    let direct = open(&server.url()).await;
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(hasty(&url).await);
    }
    let counting = Counting::start(stores).await;
    for round in 0..9 {
        counting.until_more(10).await;
        match round % 3 {
            0 => proxy.reset(),
            1 => proxy.hold_replies(),
            _ => proxy.hold(),
        }
        let held = async || proxy.replies_held() + proxy.requests_held() > 0;
        if round % 3 != 0 {
            until(SOON, "something to be held", held).await;
        }
        proxy.pass();
    }
    counting.until_more(10).await;
    counting.assert_exact(&direct).await;
}
