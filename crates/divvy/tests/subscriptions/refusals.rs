//! What cannot work is refused, with what to do.

use divvy::Partition;
use divvy::store::{Credentials, Secret, SecretSource, StoreSettings};
use divvy::subscriptions::{Retention, SubscriptionError, SubscriptionSettings, Subscriptions};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, until};
use serde_json::json;

use crate::bed::{Act, Bed, Ledger, SOON, grant, health, settings, shard, shards};

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

/// Servers of 2.15 take 1000 consumers of a stream that does not say more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_made_takes_thousands_of_consumers() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Interest));
    let handler = Ledger::new().handler(|_, _| Act::Do);
    let subscriptions = bed.open(&settings, handler).await;
    assert_eq!(subscriptions.ensure(&shards(1100)).await.unwrap(), 1100);
    assert_eq!(subscriptions.ensure(&shards(1100)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_stream_that_is_full_of_consumers_is_told_with_what_to_do() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let config = json!({"name": "orders", "subjects": ["work.>"], "max_consumers": 2});
    bed.api("STREAM.CREATE.orders", config).await;
    let handler = Ledger::new().handler(|_, _| Act::Do);
    let subscriptions = bed.open(&settings, handler).await;
    let told = subscriptions
        .ensure(&shards(3))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("stream 'orders' takes no more consumers: raise"),
        "{told}"
    );
}

#[tokio::test]
async fn a_stream_that_takes_no_messages_of_the_partition_is_told() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let config = json!({"name": "orders", "subjects": ["wrok.>", "work.q.>"]});
    bed.api("STREAM.CREATE.orders", config).await;
    let ledger = Ledger::new();
    let (subscriptions, partition) = bed.owning(&settings, ledger.handler(|_, _| Act::Do)).await;
    let told = subscriptions.ensure(&shards(1)).await.unwrap_err();
    let rule =
        "stream 'orders' takes no messages of 'work.p.0.completed', only of wrok.>, work.q.>";
    assert!(told.to_string().contains(rule), "{told}");
    until(SOON, "that is told", async || {
        let told = health(&subscriptions, &partition).await.last_error;
        told.is_some_and(|told| told.contains(rule))
    })
    .await;
    let config = json!({"name": "orders", "subjects": ["work.*.*.completed"]});
    bed.api("STREAM.UPDATE.orders", config).await;
    bed.publish(&settings, &partition, 0..1).await;
    ledger.until_done(1).await;
}

/// The subjects that the guide names: what a worker has to be allowed.
fn least_privilege() -> String {
    let guide = include_str!("../../../../docs/operating.md");
    let (_, rest) = guide.split_once("## Messages").unwrap();
    let (_, rest) = rest.split_once("\n\"$JS.API.STREAM.INFO.STREAM\"").unwrap();
    let (subjects, _) = rest.split_once("\n```").unwrap();
    let subjects = format!("\"$JS.API.STREAM.INFO.STREAM\"{subjects}");
    subjects
        .replace("STREAM\"", "orders\"")
        .replace(".STREAM.", ".orders.")
        .replace("$JS.API.orders.", "$JS.API.STREAM.")
        .replace("DEAD", "orders-dead")
}

/// Verifies that with the permissions of the guide, and no others, messages
/// are consumed, put aside and handed on.
#[tokio::test]
async fn the_permissions_of_the_guide_are_enough() {
    let allowed = least_privilege();
    let users = format!(
        "users: [
            {{ user: admin, password: pw }}
            {{ user: divvy, password: pw, permissions: {{
                publish: {{ allow: [ {allowed} ] }}
                subscribe: {{ allow: [ \"_INBOX.divvy.tests.>\" ] }} }} }}
        ]"
    );
    let options = NatsOptions::new().authorization(&users);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let bed = Bed::with(server, Some(("admin", "pw"))).await;
    let reach = StoreSettings {
        credentials: Credentials {
            user: Some("divvy".to_owned()),
            password: Some(SecretSource::Given(Secret::new("pw"))),
            ..Credentials::default()
        },
        ..bed.reach()
    };
    let (ledger, settings) = (Ledger::new(), settings(Retention::Workqueue));
    let acts = |number, _| if number == 1 { Act::Poison } else { Act::Do };
    let (url, handler) = (bed.url(), ledger.handler(acts));
    let opened = Subscriptions::open(&url, &reach, settings.clone(), handler).await;
    let subscriptions = opened.unwrap();
    subscriptions.ensure(&shards(2)).await.unwrap();
    let partition = shard(0);
    for (token, numbers) in [(1, 0..5), (2, 5..10)] {
        let grant = grant(&partition, token);
        subscriptions.assign(&partition, grant).await.unwrap();
        bed.publish(&settings, &partition, numbers).await;
        ledger.until_done(if token == 1 { 4 } else { 9 }).await;
        subscriptions.revoke(&partition).await;
    }
    assert_eq!(ledger.numbers()["p:0"], [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(bed.dead_letters(&settings).await.len(), 1);
    assert_eq!(subscriptions.prune(&shards(1)).await.unwrap(), 1);
}

#[test]
fn the_settings_of_the_guide_are_read_and_are_the_default_where_they_can_be() {
    let guide = include_str!("../../../../docs/operating.md");
    let (_, rest) = guide.split_once("```yaml\nstream: orders").unwrap();
    let (yaml, _) = rest.split_once("```").unwrap();
    let read = SubscriptionSettings::from_yaml(&format!("stream: orders{yaml}")).unwrap();
    let plain = SubscriptionSettings::new("orders", "work");
    assert_eq!(read.template, plain.template);
    assert_eq!(
        (read.batch, read.max_handlers),
        (plain.batch, plain.max_handlers)
    );
    assert_eq!(read.redeliver_delay, plain.redeliver_delay);
}
