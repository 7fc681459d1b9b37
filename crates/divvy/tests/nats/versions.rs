//! Which servers are refused.

use divvy::store::{Store, StoreErrorKind, StoreSettings};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, Switch, until_some};

use crate::bed::{SOON, assert_refused, key, newest, open, refusal, settings, try_open};
use divvy::store::KeyValue;

#[tokio::test]
async fn an_old_server_is_refused_with_its_version_and_the_minimum() {
    let server = NatsServer::start(NatsVersion::Refused, NatsOptions::new()).await;
    let error = refusal(&server.url(), &settings()).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["2.9.10", NatsVersion::Lowest.number()],
    );
}

#[tokio::test]
async fn replicas_need_a_newer_server_than_one_copy_does() {
    let server = NatsServer::start(NatsVersion::Lowest, NatsOptions::new()).await;
    let replicated = StoreSettings {
        replicas: 3,
        ..settings()
    };
    let error = refusal(&server.url(), &replicated).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &[
            NatsVersion::Lowest.number(),
            NatsVersion::LowestReplicated.number(),
            "3 replica",
        ],
    );
    let store = try_open(&server.url(), &settings()).await.unwrap();
    assert!(store.describe().contains("NATS 2.10.26"), "{store:?}");
}

#[tokio::test]
async fn replicas_need_a_cluster() {
    let server = newest().await;
    let replicated = StoreSettings {
        replicas: 3,
        ..settings()
    };
    let error = refusal(&server.url(), &replicated).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["cannot make bucket 'divvy'", "10074"],
    );
}

#[tokio::test]
async fn servers_without_a_cluster_are_no_common_store() {
    let (one, other) = (newest().await, newest().await);
    let error = refusal(&format!("{},{}", one.url(), other.url()), &settings()).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["2 servers", "in no cluster"],
    );
}

#[tokio::test]
async fn a_server_without_jetstream_is_refused() {
    let options = NatsOptions::new().without_jetstream();
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let error = refusal(&server.url(), &settings()).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["JetStream is not enabled"]);
}

#[tokio::test]
async fn an_old_server_found_by_a_reconnect_is_refused() {
    let mut good = newest().await;
    let old = NatsServer::start(NatsVersion::Refused, NatsOptions::new()).await;
    let switch = Switch::to(good.address()).await;
    let store = open(&format!("nats://{}", switch.address())).await;
    assert!(store.get(&key("a")).await.unwrap().is_none());
    switch.lead_to(old.address());
    good.kill();
    let refused = until_some(SOON, "a refusal of the old server", async || {
        let error = store.get(&key("a")).await.unwrap_err();
        (error.kind() == StoreErrorKind::Unfit).then_some(error)
    });
    assert_refused(
        &refused.await,
        StoreErrorKind::Unfit,
        &["2.9.10", NatsVersion::Lowest.number()],
    );
}
