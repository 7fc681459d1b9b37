//! Watches through everything that can happen to a server.

use divvy::store::nats::NatsStore;
use divvy::store::{Change, KeyValue, Notice, Prefix, Store, Watch};
use divvy_testbed::{NatsVersion, until};
use tokio::time::timeout;

use crate::admin::Admin;
use crate::bed::{SOON, create, done, key, newest, open, update};

/// Waits until the watch has shown this, in whatever way.
async fn until_seen(watch: &mut Watch, what: &str, is_it: impl Fn(&Notice) -> bool) {
    let looking = async {
        loop {
            // A listing may fail while the server is away.
            if watch.next().await.is_ok_and(|notice| is_it(&notice)) {
                return;
            }
        }
    };
    let seen = timeout(SOON, looking).await;
    assert!(seen.is_ok(), "not seen: {what}");
}

async fn until_value(watch: &mut Watch, name: &str, value: &[u8]) {
    let is_it = |notice: &Notice| match notice {
        Notice::Changed(Change::Put(entry)) => entry.key == key(name) && *entry.value == *value,
        _ => false,
    };
    until_seen(watch, &format!("{name} = {value:?}"), is_it).await;
}

async fn until_gone(watch: &mut Watch, name: &str) {
    let is_it = |notice: &Notice| match notice {
        Notice::Changed(Change::Deleted(deleted, _)) => *deleted == key(name),
        _ => false,
    };
    until_seen(watch, &format!("{name} deleted"), is_it).await;
}

async fn until_current(watch: &mut Watch) {
    until_seen(watch, "everything", |notice| *notice == Notice::Current).await;
}

async fn watch_all(store: &NatsStore) -> Watch {
    store.watch(&Prefix::ALL).await.unwrap()
}

#[tokio::test]
async fn a_watch_of_an_empty_bucket_is_current_at_once_and_sees_the_first_key() {
    for version in NatsVersion::SUPPORTED {
        let options = divvy_testbed::NatsOptions::new();
        let server = divvy_testbed::NatsServer::start(version, options).await;
        let store = open(&server.url()).await;
        let mut watch = watch_all(&store).await;
        until_current(&mut watch).await;
        let revision = create(&store, "a", b"1").await;
        until_value(&mut watch, "a", b"1").await;
        let revision = update(&store, "a", revision, b"2").await;
        until_value(&mut watch, "a", b"2").await;
        done(store.delete(&key("a"), revision).await);
        until_gone(&mut watch, "a").await;
    }
}

#[tokio::test]
async fn a_watch_goes_on_after_a_restart_and_catches_up() {
    let mut server = newest().await;
    let store = open(&server.url()).await;
    create(&store, "a", b"1").await;
    let mut watch = watch_all(&store).await;
    until_current(&mut watch).await;
    server.stop().await;
    server.start_again().await;
    until_current(&mut watch).await;
    let other = open(&server.url()).await;
    create(&other, "b", b"2").await;
    until_value(&mut watch, "b", b"2").await;
}

#[tokio::test]
async fn a_watch_of_a_deleted_bucket_sees_that_its_keys_are_gone_and_goes_on() {
    let server = newest().await;
    let store = open(&server.url()).await;
    create(&store, "a", b"1").await;
    let mut watch = watch_all(&store).await;
    until_current(&mut watch).await;
    Admin::of(&server).await.delete_bucket("divvy").await;
    until_gone(&mut watch, "a").await;
    create(&store, "a", b"2").await;
    until_value(&mut watch, "a", b"2").await;
}

#[tokio::test]
async fn a_watch_whose_consumer_an_operator_deletes_goes_on() {
    let server = newest().await;
    let store = open(&server.url()).await;
    let mut watch = watch_all(&store).await;
    until_current(&mut watch).await;
    let admin = Admin::of(&server).await;
    for consumer in admin.consumer_names("divvy").await {
        let subject = format!("CONSUMER.DELETE.KV_divvy.{consumer}");
        admin.ask(&subject, serde_json::json!({})).await;
    }
    create(&store, "a", b"1").await;
    until_value(&mut watch, "a", b"1").await;
}

#[tokio::test]
async fn a_dropped_watch_and_store_leave_no_connection() {
    let server = newest().await;
    let store = open(&server.url()).await;
    let watch = watch_all(&store).await;
    let connections = async || {
        let known = server.monitor("/connz").await.unwrap();
        known["num_connections"].as_u64().unwrap()
    };
    assert_eq!(connections().await, 1);
    drop(store);
    drop(watch);
    until(SOON, "the connection to end", async || {
        connections().await == 0
    })
    .await;
}

/// Servers of 2.15 take 1000 consumers of a stream that does not say how many.
#[tokio::test]
async fn a_bucket_takes_the_watches_of_a_large_fleet() {
    let server = newest().await;
    let store = open(&server.url()).await;
    let mut watches = Vec::new();
    for number in 0..1100 {
        let one = Prefix::only(key(&format!("k{number}")));
        watches.push(store.watch(&one).await.unwrap());
    }
    create(&store, "k1099", b"1").await;
    until_value(&mut watches[1099], "k1099", b"1").await;
}

/// A server cuts off whoever leaves 64 MB unread.
#[tokio::test]
async fn a_watcher_that_stands_still_is_not_cut_off() {
    const WRITES: u32 = 400;
    let server = newest().await;
    let (url, writer) = (server.url(), open(&server.url()).await);
    let (standing, stands) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel();
    // On a runtime of its own, which stands still while nobody runs it.
    let watcher =
        std::thread::spawn(move || {
            let builder = &mut tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            let (store, mut watch) = runtime.block_on(async {
                let store = open(&url).await;
                let mut watch = watch_all(&store).await;
                until_current(&mut watch).await;
                (store, watch)
            });
            standing.send(()).unwrap();
            goes_on.recv_timeout(SOON).unwrap();
            runtime.block_on(until_seen(&mut watch, "the last value", |notice| {
            matches!(notice, Notice::Changed(Change::Put(entry)) if entry.value[0] == 1)
        }));
            store.connection().borrow().connects
        });
    stands.await.unwrap();
    let mut value = vec![0; writer.value_bytes_max()];
    let mut revision = create(&writer, "large", &value).await;
    for number in 1..=WRITES {
        value[0] = u8::from(number == WRITES);
        revision = update(&writer, "large", revision, &value).await;
    }
    go_on.send(()).unwrap();
    assert_eq!(watcher.join().unwrap(), 1, "it was connected again");
}
