//! Servers that stop, connections that break.

use std::time::Duration;

use divvy::store::StoreSettings;
use divvy::subscriptions::{Retention, Subscriptions};
use divvy_testbed::{NatsCluster, NatsVersion, Proxy, until, until_some};
use serde_json::json;

use crate::bed::{Act, Bed, Ledger, Publisher, RETENTIONS, SOON, grant, settings, shards};

/// Verifies that a restart in the midst of messages loses nothing and, for an
/// owner that stays, repeats nothing: what the server has not heard is known
/// here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_loses_and_repeats_nothing() {
    for retention in RETENTIONS {
        let (mut bed, settings) = (Bed::new().await, settings(retention));
        let ledger = Ledger::new();
        let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
        let all = shards(4);
        subscriptions.ensure(&all).await.unwrap();
        for partition in &all {
            let grant = grant(partition, 1);
            subscriptions.assign(partition, grant).await.unwrap();
            bed.publish(&settings, partition, 0..50).await;
        }
        bed.server.stop().await;
        bed.server.start_again().await;
        for partition in &all {
            bed.publish(&settings, partition, 50..100).await;
        }
        ledger.until_done(400).await;
        subscriptions.close().await;
        ledger.check_in_order(&all, 100);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_silent_is_asked_again() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let (subscriptions, partition) = bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
    bed.publish(&settings, &partition, 0..5).await;
    ledger.until_done(5).await;
    bed.server.pause();
    until(SOON, "that is noticed", async || {
        let health = subscriptions.health();
        health
            .iter()
            .all(|health| !health.is_consuming && health.last_error.is_some())
    })
    .await;
    bed.server.resume();
    bed.publish(&settings, &partition, 5..10).await;
    ledger.until_done(10).await;
    ledger.check_in_order(&shards(1), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_connections_repeat_nothing() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let proxy = Proxy::start(bed.server.address()).await;
    let url = format!("nats://{}", proxy.address()).parse().unwrap();
    let ledger = Ledger::new();
    let handler = ledger.handler(|_, _| Act::Do);
    let reach = bed.reach();
    let opened = Subscriptions::open(&url, &reach, settings.clone(), handler);
    let subscriptions = opened.await.unwrap();
    let all = shards(4);
    for partition in &all {
        let grant = grant(partition, 1);
        subscriptions.assign(partition, grant).await.unwrap();
    }
    let publishing = async {
        for number in 0..100 {
            for partition in &all {
                bed.publish(&settings, partition, [number]).await;
            }
        }
    };
    let breaking = async {
        for count in [40, 80, 120, 160, 200] {
            ledger.until_done(count).await;
            proxy.reset();
        }
    };
    tokio::join!(publishing, breaking);
    ledger.until_done(400).await;
    subscriptions.close().await;
    ledger.check_in_order(&all, 100);
}

#[tokio::test]
async fn a_revocation_without_a_server_ends_in_time() {
    let (mut bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.drain_timeout = Duration::from_millis(100);
    let ledger = Ledger::new();
    let (subscriptions, partition) = bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
    bed.publish(&settings, &partition, 0..5).await;
    ledger.until_done(5).await;
    bed.server.kill();
    let revoking = tokio::time::timeout(SOON, subscriptions.revoke(&partition));
    revoking.await.expect("it ends");
    assert!(subscriptions.health().is_empty());
}

/// Verifies that consumers are kept as often as their stream, and that the loss
/// of the server that leads it loses and repeats nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_the_leader_of_a_replicated_stream_loses_and_repeats_nothing() {
    let mut cluster = NatsCluster::start(NatsVersion::Newest, 3).await;
    let settings = settings(Retention::Workqueue);
    let reach = StoreSettings {
        cluster: "tests".to_owned(),
        connect_timeout: SOON * 2,
        operation_timeout: Duration::from_secs(5),
        replicas: 3,
        ..StoreSettings::default()
    };
    let (url, ledger) = (cluster.url().parse().unwrap(), Ledger::new());
    let open = async || {
        let handler = ledger.handler(|_, _| Act::Do);
        let opened = Subscriptions::open(&url, &reach, settings.clone(), handler);
        opened.await.unwrap()
    };
    let (one, two) = (open().await, open().await);
    let publisher = Publisher::new(&cluster.url(), None).await;
    let all = shards(8);
    for partition in &all {
        one.assign(partition, grant(partition, 1)).await.unwrap();
        publisher.publish(&settings, partition, 0..20).await;
    }
    let first = until_some(SOON, "a leader of the first consumer", async || {
        let first = all.iter().next().unwrap();
        let found = publisher.consumer(&settings, first).await;
        found["cluster"]["leader"].is_string().then_some(found)
    })
    .await;
    let copies = first["cluster"]["replicas"].as_array();
    assert_eq!(copies.map(Vec::len), Some(2), "beside the leader: {first}");
    let leader = until_some(SOON, "a leader of the stream", async || {
        cluster.leader_of("orders").await
    });
    let leader = leader.await;
    cluster.server(leader).kill();
    for partition in &all {
        publisher.publish(&settings, partition, 20..40).await;
    }
    ledger.until_done(8 * 40).await;
    // And they move, with two servers left.
    for partition in &all {
        one.revoke(partition).await;
        two.assign(partition, grant(partition, 2)).await.unwrap();
        publisher.publish(&settings, partition, 40..50).await;
    }
    ledger.until_done(8 * 50).await;
    two.close().await;
    ledger.check_in_order(&all, 50);
    let left = publisher.api("STREAM.INFO.orders", json!({})).await;
    assert_eq!(left["state"]["messages"], 0, "{left}");
}
