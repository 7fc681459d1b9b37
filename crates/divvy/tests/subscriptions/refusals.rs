//! What cannot work is refused, with what to do.

use divvy::Partition;
use divvy::subscriptions::{Retention, SubscriptionError, SubscriptionSettings, Subscriptions};
use divvy_testbed::until;
use serde_json::json;

use crate::bed::{Act, Bed, Ledger, SOON, grant, health, settings, shard};

async fn refusal(bed: &Bed, settings: SubscriptionSettings) -> String {
    let handler = Ledger::new().handler(|_, _| Act::Do);
    let opened = Subscriptions::open(&bed.url(), &bed.reach(), settings, handler).await;
    opened.map(|_| ()).unwrap_err().to_string()
}

#[tokio::test]
async fn a_stream_that_is_missing_or_of_another_kind_is_refused() {
    let bed = Bed::new().await;
    let plain = SubscriptionSettings::new("orders", "work");
    let told = refusal(&bed, plain.clone()).await;
    assert!(told.contains("set retention to have it made"), "{told}");
    let odd = SubscriptionSettings {
        template: "{keys}.{prefix}".to_owned(),
        ..settings(Retention::Limits)
    };
    let told = refusal(&bed, odd).await;
    assert!(
        told.contains("the template does not begin with {prefix}"),
        "{told}"
    );
    let handler = Ledger::new().handler(|_, _| Act::Do);
    bed.open(&settings(Retention::Limits), handler).await;
    let told = refusal(&bed, settings(Retention::Workqueue)).await;
    assert!(
        told.contains("is 'limits', and 'workqueue' is wanted"),
        "{told}"
    );
    let handler = Ledger::new().handler(|_, _| Act::Do);
    bed.open(&plain, handler).await;
}

#[tokio::test]
async fn wrong_settings_and_addresses_are_refused_before_anything_is_made() {
    let bed = Bed::new().await;
    let wrong = SubscriptionSettings {
        batch: 0,
        ..settings(Retention::Limits)
    };
    assert_eq!(refusal(&bed, wrong).await, "batch '0': must be in 1..=1000");
    let handler = Ledger::new().handler(|_, _| Act::Do);
    let url = "memory".parse().unwrap();
    let reach = bed.reach();
    let opened = Subscriptions::open(&url, &reach, settings(Retention::Limits), handler);
    let told = opened.await.map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("is not a NATS server's address"), "{told}");
    let listed = bed.api("STREAM.NAMES", json!({})).await;
    assert_eq!(listed["total"], 0, "{listed}");
}

#[tokio::test]
async fn a_partition_without_a_subject_is_refused() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let handler = Ledger::new().handler(|_, _| Act::Do);
    let subscriptions = bed.open(&settings, handler).await;
    for segment in ["a.b", "*", ">", "a b"] {
        let partition = Partition::new(["tool", segment]).unwrap();
        let refused = subscriptions.assign(&partition, grant(&partition, 1)).await;
        let told = refused.unwrap_err();
        assert!(matches!(told, SubscriptionError::Invalid(_)), "{told}");
        assert!(told.to_string().contains("has no subject"), "{told}");
        let all = divvy::Partitions::new([partition]).unwrap();
        assert!(subscriptions.ensure(&all).await.is_err());
    }
    assert!(bed.consumers(&settings).await.is_empty());
}

#[tokio::test]
async fn a_consumer_that_somebody_else_made_under_the_name_is_left_alone() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    let partition = shard(0);
    let name = settings.consumer(&partition).unwrap();
    let config = json!({"durable_name": name, "ack_policy": "none"});
    let call = format!("CONSUMER.CREATE.orders.{name}");
    let made = bed
        .api(&call, json!({"stream_name": "orders", "config": config}))
        .await;
    assert!(made["error"].is_null(), "{made}");
    subscriptions
        .assign(&partition, grant(&partition, 1))
        .await
        .unwrap();
    bed.publish(&settings, &partition, 0..1).await;
    until(SOON, "that is told", async || {
        let told = health(&subscriptions, &partition).await.last_error;
        told.is_some_and(|told| told.contains("delete it, or choose another name"))
    })
    .await;
    assert!(!health(&subscriptions, &partition).await.is_consuming);
    assert_eq!(ledger.tried(), 0);
    bed.api(&format!("CONSUMER.DELETE.orders.{name}"), json!({}))
        .await;
    ledger.until_done(1).await;
}
