//! One message at a time, in order.

use std::time::{Duration, Instant};

use divvy::store::StoreSettings;
use divvy::subscriptions::{Retention, Subscriptions};
use divvy_testbed::{NatsVersion, until};

use crate::bed::{Act, Bed, Ledger, RETENTIONS, SOON, grant, health, settings, shard, shards};

#[tokio::test]
async fn what_was_published_while_nobody_owned_is_delivered_later_once_and_in_order() {
    for retention in RETENTIONS {
        let (bed, settings) = (Bed::new().await, settings(retention));
        let ledger = Ledger::new();
        let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
        let all = shards(3);
        assert_eq!(subscriptions.ensure(&all).await.unwrap(), 3);
        assert_eq!(subscriptions.ensure(&all).await.unwrap(), 0);
        for partition in &all {
            bed.publish(&settings, partition, 0..10).await;
        }
        for partition in &all {
            let grant = grant(partition, 1);
            subscriptions.assign(partition, grant).await.unwrap();
        }
        ledger.until_done(30).await;
        subscriptions.close().await;
        ledger.check_in_order(&all, 10);
    }
}

#[tokio::test]
async fn the_next_owner_goes_on_where_the_last_one_acknowledged() {
    for (retention, version) in RETENTIONS.into_iter().zip(NatsVersion::SUPPORTED) {
        let (bed, settings) = (Bed::of(version).await, settings(retention));
        let ledger = Ledger::new();
        let (one, two) = (
            bed.open(&settings, ledger.handler(|_, _| Act::Do)).await,
            bed.open(&settings, ledger.handler(|_, _| Act::Do)).await,
        );
        let partition = shard(0);
        one.assign(&partition, grant(&partition, 1)).await.unwrap();
        one.ensure(&shards(1)).await.unwrap();
        bed.publish(&settings, &partition, 0..20).await;
        ledger.until_done(20).await;
        one.revoke(&partition).await;
        bed.publish(&settings, &partition, 20..30).await;
        two.assign(&partition, grant(&partition, 2)).await.unwrap();
        ledger.until_done(30).await;
        bed.publish(&settings, &partition, 30..31).await;
        ledger.until_done(31).await;
        ledger.check_in_order(&shards(1), 31);
        let tokens: Vec<_> = ledger.seen().iter().map(|seen| seen.token).collect();
        assert_eq!(tokens[..20], [1; 20]);
        assert_eq!(tokens[20..], [2; 11]);
        assert_eq!(bed.consumers(&settings).await.len(), 1);
    }
}

#[tokio::test]
async fn without_partitions_there_is_no_consumer() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    bed.publish(&settings, &shard(0), 0..10).await;
    assert!(bed.consumers(&settings).await.is_empty());
    assert!(subscriptions.health().is_empty());
    subscriptions.revoke(&shard(0)).await;
    assert!(bed.consumers(&settings).await.is_empty());
    assert_eq!(ledger.tried(), 0);
}

#[tokio::test]
async fn later_messages_wait_for_a_failing_one_whose_delay_grows() {
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.redeliver_delay = Duration::from_millis(100);
    let ledger = Ledger::new();
    let fails = |number, deliveries| match (number, deliveries) {
        (1, 1 | 3) => Act::Fail,
        (1, 2) => Act::Panic,
        _ => Act::Do,
    };
    let subscriptions = bed.open(&settings, ledger.handler(fails)).await;
    let partition = shard(0);
    let begun = Instant::now();
    subscriptions
        .assign(&partition, grant(&partition, 1))
        .await
        .unwrap();
    bed.publish(&settings, &partition, 0..4).await;
    ledger.until_done(4).await;
    assert!(begun.elapsed() >= Duration::from_millis(100 + 200 + 400));
    ledger.check_in_order(&shards(1), 4);
    assert_eq!(ledger.tried(), 7);
    let health = health(&subscriptions, &partition).await;
    assert_eq!(
        (health.failed, health.redelivered, health.dead_lettered),
        (3, 3, 0)
    );
    let told = health.last_error.unwrap();
    assert_eq!(told, "message 2: not today");
    assert!(bed.dead_letters(&settings).await.is_empty());
}

#[tokio::test]
async fn a_handler_may_take_longer_than_the_server_waits() {
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.ack_wait = Duration::from_millis(600);
    let ledger = Ledger::new();
    let (_subscriptions, partition) = bed
        .owning(&settings, ledger.handler(|_, _| Act::Wait))
        .await;
    bed.publish(&settings, &partition, 0..2).await;
    ledger.until_tried(1).await;
    let begun = Instant::now();
    until(SOON, "two waits are over", async || {
        begun.elapsed() > settings.ack_wait * 2
    })
    .await;
    assert_eq!(ledger.tried(), 1);
    ledger.open_gate();
    ledger.until_done(2).await;
    ledger.check_in_order(&shards(1), 2);
}

/// Verifies that a handler goes on while its partition's consumer is looked at
/// by a server that does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_goes_on_while_the_server_does_not_answer() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let reach = StoreSettings {
        operation_timeout: Duration::from_secs(60),
        ping_interval: Duration::from_secs(60),
        ..bed.reach()
    };
    let ledger = Ledger::new();
    let (url, handler) = (bed.url(), ledger.handler(|_, _| Act::Wait));
    let opened = Subscriptions::open(&url, &reach, settings.clone(), handler);
    let subscriptions = opened.await.unwrap();
    let partition = shard(0);
    let granted = grant(&partition, 1);
    subscriptions.assign(&partition, granted).await.unwrap();
    bed.publish(&settings, &partition, 0..1).await;
    ledger.until_tried(1).await;
    bed.server.pause();
    let begun = Instant::now();
    until(SOON, "the consumer is being looked at", async || {
        begun.elapsed() > settings.reconcile_interval * 5
    })
    .await;
    ledger.open_gate();
    ledger.until_done(1).await;
    bed.server.resume();
}

#[tokio::test]
async fn the_same_calls_again_change_nothing_and_the_last_wins() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    let partition = shard(0);
    for token in [1, 1, 1, 2] {
        let grant = grant(&partition, token);
        subscriptions.assign(&partition, grant).await.unwrap();
    }
    bed.publish(&settings, &partition, 0..5).await;
    ledger.until_done(5).await;
    assert!(ledger.seen().iter().all(|seen| seen.token == 2));
    subscriptions.revoke(&partition).await;
    subscriptions.revoke(&partition).await;
    assert!(subscriptions.health().is_empty());
    ledger.check_in_order(&shards(1), 5);
}

#[tokio::test]
async fn figures_of_partitions_are_shown() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Wait)).await;
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..7).await;
    subscriptions
        .assign(&partition, grant(&partition, 5))
        .await
        .unwrap();
    ledger.until_tried(1).await;
    let now = health(&subscriptions, &partition).await;
    assert_eq!((now.in_flight, now.lag, now.token.get()), (1, 6, 5));
    assert!(now.is_consuming);
    let page = subscriptions.render_metrics("w-0");
    for line in [
        "divvy_subscription_lag{worker=\"w-0\",partition=\"p:0\"} 6",
        "divvy_subscription_in_flight{worker=\"w-0\",partition=\"p:0\"} 1",
        "divvy_subscription_handled_total{worker=\"w-0\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    ledger.open_gate();
    until(SOON, "nothing is left", async || {
        let now = health(&subscriptions, &partition).await;
        (now.handled, now.in_flight, now.lag) == (7, 0, 0)
    })
    .await;
    assert_eq!(subscriptions.metrics().handled(), 7);
}
