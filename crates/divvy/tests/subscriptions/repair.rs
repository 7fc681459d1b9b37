//! Consumers and streams that somebody else deletes or edits.

use std::time::Duration;

use divvy::Partition;
use divvy::subscriptions::{Mode, Retention, SubscriptionSettings, Subscriptions};
use divvy_testbed::until;
use serde_json::{Value, json};

use crate::bed::{Act, Bed, Ledger, RETENTIONS, SOON, grant, health, settings, shard, shards};

async fn repaired(subscriptions: &Subscriptions, partition: &Partition, times: u64) {
    until(SOON, "it is repaired", async || {
        health(subscriptions, partition).await.repaired >= times
    })
    .await;
}

#[tokio::test]
async fn a_deleted_consumer_is_made_again_and_repeats_nothing() {
    for retention in RETENTIONS {
        let (bed, settings) = (Bed::new().await, settings(retention));
        let ledger = Ledger::new();
        let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
        let partition = shard(0);
        subscriptions.ensure(&shards(1)).await.unwrap();
        subscriptions
            .assign(&partition, grant(&partition, 1))
            .await
            .unwrap();
        bed.publish(&settings, &partition, 0..10).await;
        ledger.until_done(10).await;
        until(SOON, "all of it is acknowledged", async || {
            bed.consumer(&settings, &partition).await["num_ack_pending"] == 0
        })
        .await;
        let name = settings.consumer(&partition).unwrap();
        bed.api(&format!("CONSUMER.DELETE.orders.{name}"), json!({}))
            .await;
        until(SOON, "it is there again", async || {
            bed.consumers(&settings).await == [name.clone()]
        })
        .await;
        bed.publish(&settings, &partition, 10..20).await;
        ledger.until_done(20).await;
        ledger.check_in_order(&shards(1), 20);
    }
}

async fn edit(bed: &Bed, settings: &SubscriptionSettings, partition: &Partition, change: Value) {
    let mut config = bed.consumer(settings, partition).await["config"].clone();
    for (field, value) in change.as_object().unwrap() {
        config[field] = value.clone();
    }
    let name = settings.consumer(partition).unwrap();
    let filter = config["filter_subject"].as_str().unwrap().to_owned();
    let call = format!("CONSUMER.CREATE.orders.{name}.{filter}");
    let request = json!({"stream_name": "orders", "action": "update", "config": config});
    let edited = bed.api(&call, request).await;
    assert!(edited["error"].is_null(), "{edited}");
}

#[tokio::test]
async fn an_edited_consumer_is_set_back() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let (subscriptions, partition) = bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
    bed.publish(&settings, &partition, 0..3).await;
    ledger.until_done(3).await;
    let before = bed.consumer(&settings, &partition).await["config"].clone();
    let edits = [
        json!({"max_ack_pending": 500}),
        json!({"max_deliver": 1, "ack_wait": 1_000_000_000}),
        json!({"filter_subject": "work.>"}),
    ];
    for (number, change) in edits.into_iter().enumerate() {
        edit(&bed, &settings, &partition, change).await;
        repaired(&subscriptions, &partition, number as u64 + 1).await;
        let after = bed.consumer(&settings, &partition).await["config"].clone();
        for field in [
            "max_ack_pending",
            "max_deliver",
            "ack_wait",
            "filter_subject",
        ] {
            assert_eq!(before[field], after[field], "{field}");
        }
    }
    bed.publish(&settings, &partition, 3..6).await;
    ledger.until_done(6).await;
    ledger.check_in_order(&shards(1), 6);
    assert_eq!(subscriptions.metrics().repaired(), 3);
}

/// In a stream that is made again, sequences begin anew: what comes there is
/// not taken for what was handled before.
#[tokio::test]
async fn a_stream_that_is_deleted_is_made_again_and_read_from_its_beginning() {
    for mode in [Mode::Ordered, Mode::Concurrent] {
        let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
        settings.mode = mode;
        let ledger = Ledger::new();
        let (_subscriptions, partition) =
            bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
        bed.publish(&settings, &partition, 0..10).await;
        ledger.until_done(10).await;
        bed.api("STREAM.DELETE.orders", json!({})).await;
        until(SOON, "the stream is there again", async || {
            bed.api("STREAM.INFO.orders", json!({})).await["error"].is_null()
        })
        .await;
        bed.publish(&settings, &partition, 20..25).await;
        ledger.until_done(15).await;
        let mut numbers = ledger.numbers()["p:0"].clone();
        numbers.sort_unstable();
        let expected: Vec<u32> = (0..10).chain(20..25).collect();
        assert_eq!(numbers, expected);
    }
}

#[tokio::test]
async fn consumers_of_partitions_that_are_no_more_are_pruned_and_no_others() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let other = SubscriptionSettings {
        name: "audit".to_owned(),
        ..settings.clone()
    };
    let handler = || Ledger::new().handler(|_, _| Act::Do);
    let subscriptions = bed.open(&settings, handler()).await;
    let audit = bed.open(&other, handler()).await;
    subscriptions.ensure(&shards(5)).await.unwrap();
    audit.ensure(&shards(5)).await.unwrap();
    assert_eq!(subscriptions.prune(&shards(2)).await.unwrap(), 3);
    let mut names = bed.consumers(&settings).await;
    names.sort();
    let kept = |settings: &SubscriptionSettings, count| {
        let all = shards(count);
        let names = all
            .iter()
            .map(|partition| settings.consumer(partition).unwrap());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names, [kept(&other, 5), kept(&settings, 2)].concat());
}

/// Settings with which nobody looks at consumers but after trouble.
fn unseen(retention: Retention) -> SubscriptionSettings {
    SubscriptionSettings {
        reconcile_interval: Duration::from_hours(1),
        ..settings(retention)
    }
}

/// Verifies that a message which failed is not taken for one that was handled
/// when later ones overtake it.
#[tokio::test]
async fn a_consumer_that_gives_out_more_than_one_at_a_time_loses_no_failing_message() {
    let (bed, mut settings) = (Bed::new().await, unseen(Retention::Limits));
    settings.redeliver_delay = Duration::from_millis(500);
    let ledger = Ledger::new();
    let acts = |number, deliveries| match (number, deliveries) {
        (1, 1) => Act::Fail,
        _ => Act::Do,
    };
    let (subscriptions, partition) = bed.owning(&settings, ledger.handler(acts)).await;
    bed.publish(&settings, &partition, 0..1).await;
    ledger.until_done(1).await;
    edit(&bed, &settings, &partition, json!({"max_ack_pending": 500})).await;
    bed.publish(&settings, &partition, 1..6).await;
    ledger.until_done(6).await;
    subscriptions.close().await;
    let mut numbers = ledger.numbers()["p:0"].clone();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_consumer_with_another_filter_brings_nobody_elses_messages() {
    for retention in [Retention::Limits, Retention::Interest] {
        let (bed, settings) = (Bed::new().await, unseen(retention));
        let ledger = Ledger::new();
        let (subscriptions, partition) =
            bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
        subscriptions.ensure(&shards(2)).await.unwrap();
        bed.publish(&settings, &partition, 0..1).await;
        ledger.until_done(1).await;
        edit(
            &bed,
            &settings,
            &partition,
            json!({"filter_subject": "work.>"}),
        )
        .await;
        bed.publish(&settings, &shard(1), 7..9).await;
        bed.publish(&settings, &partition, 1..4).await;
        ledger.until_done(4).await;
        ledger.check_in_order(&shards(1), 4);
        let config = &bed.consumer(&settings, &partition).await["config"];
        assert_eq!(config["filter_subject"], "work.p.0.completed");
        let other = bed.consumer(&settings, &shard(1)).await;
        assert_eq!(other["num_pending"], 2, "{other}");
    }
}

#[tokio::test]
async fn a_consumer_that_refuses_requests_is_set_back() {
    let (bed, settings) = (Bed::new().await, unseen(Retention::Limits));
    let ledger = Ledger::new();
    let (subscriptions, partition) = bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
    bed.publish(&settings, &partition, 0..1).await;
    ledger.until_done(1).await;
    edit(&bed, &settings, &partition, json!({"max_batch": 1})).await;
    // More than were on order before.
    bed.publish(&settings, &partition, 1..2 * settings.batch)
        .await;
    ledger.until_done(2 * settings.batch as usize).await;
    ledger.check_in_order(&shards(1), 2 * settings.batch);
    repaired(&subscriptions, &partition, 1).await;
    let told = health(&subscriptions, &partition).await.last_error.unwrap();
    assert!(told.contains("Exceeded MaxRequestBatch"), "{told}");
}

/// Verifies that with several at once, too, it is what the server has seen
/// acknowledged that does not come again, however much that was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_consumer_of_many_messages_at_once_repeats_nothing() {
    const MANY: u32 = 5_000;
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.mode = Mode::Concurrent;
    let ledger = Ledger::new();
    let (subscriptions, partition) = bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
    bed.publish(&settings, &partition, 0..MANY).await;
    ledger.until_done(MANY as usize).await;
    let acknowledged = async || {
        let info = bed.consumer(&settings, &partition).await;
        info["num_ack_pending"] == 0 && info["num_pending"] == 0
    };
    until(SOON, "all of it is acknowledged", acknowledged).await;
    // What the server knows is looked up now and then.
    let begun = std::time::Instant::now();
    until(SOON, "that is seen", async || {
        begun.elapsed() > settings.reconcile_interval * 3
    })
    .await;
    let name = settings.consumer(&partition).unwrap();
    bed.api(&format!("CONSUMER.DELETE.orders.{name}"), json!({}))
        .await;
    repaired(&subscriptions, &partition, 1).await;
    bed.publish(&settings, &partition, MANY..MANY + 1).await;
    ledger.until_done(MANY as usize + 1).await;
    subscriptions.close().await;
    assert_eq!(ledger.tried(), MANY as usize + 1);
}
