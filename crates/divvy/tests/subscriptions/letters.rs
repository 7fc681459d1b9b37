//! Messages that cannot be handled.

use std::time::Duration;

use divvy::subscriptions::{Retention, SubscriptionSettings};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, until};
use serde_json::json;

use crate::bed::{Act, Bed, Ledger, RETENTIONS, SOON, grant, health, settings, shard, shards};

#[tokio::test]
async fn a_poison_message_goes_to_the_dead_letters_and_the_partition_goes_on() {
    for retention in RETENTIONS {
        let (bed, mut settings) = (Bed::new().await, settings(retention));
        settings.max_deliver = 3;
        let ledger = Ledger::new();
        let acts = |number, _| match number {
            1 => Act::Fail,
            2 => Act::Panic,
            3 => Act::Poison,
            _ => Act::Do,
        };
        let subscriptions = bed.open(&settings, ledger.handler(acts)).await;
        subscriptions.ensure(&shards(1)).await.unwrap();
        let partition = shard(0);
        subscriptions
            .assign(&partition, grant(&partition, 1))
            .await
            .unwrap();
        bed.publish(&settings, &partition, 0..6).await;
        ledger.until_done(3).await;
        assert_eq!(ledger.numbers()["p:0"], [0, 4, 5]);
        assert_eq!(ledger.tried(), 1 + 3 + 3 + 1 + 2);
        let letters = bed.dead_letters(&settings).await;
        let expected = [
            ("Divvy-Reason: not today", "Divvy-Deliveries: 3", "1"),
            (
                "Divvy-Reason: panicked: a handler panics",
                "Divvy-Deliveries: 3",
                "2",
            ),
            ("Divvy-Reason: never", "Divvy-Deliveries: 1", "3"),
        ];
        assert_eq!(letters.len(), expected.len(), "{letters:?}");
        for (letter, (why, deliveries, payload)) in letters.iter().zip(expected) {
            assert!(
                letter.contains(why) && letter.contains(deliveries),
                "{letter}"
            );
            assert!(letter.contains("Divvy-Partition: p:0"), "{letter}");
            assert!(letter.ends_with(payload), "{letter}");
        }
        until(SOON, "nothing is left", async || {
            let info = bed.consumer(&settings, &partition).await;
            info["num_ack_pending"] == 0 && info["num_pending"] == 0
        })
        .await;
        assert_eq!(health(&subscriptions, &partition).await.dead_lettered, 3);
    }
}

#[tokio::test]
async fn a_message_is_kept_while_it_cannot_be_put_aside() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Workqueue));
    let ledger = Ledger::new();
    let acts = |number, _| if number == 0 { Act::Poison } else { Act::Do };
    let subscriptions = bed.open(&settings, ledger.handler(acts)).await;
    let letters = &settings.dead_letters.stream;
    bed.api(&format!("STREAM.DELETE.{letters}"), json!({}))
        .await;
    let partition = shard(0);
    subscriptions
        .assign(&partition, grant(&partition, 1))
        .await
        .unwrap();
    bed.publish(&settings, &partition, 0..2).await;
    until(SOON, "that is told", async || {
        let told = health(&subscriptions, &partition).await.last_error;
        told.is_some_and(|told| told.contains("cannot put aside message 1"))
    })
    .await;
    assert!(ledger.seen().is_empty());
    let subjects = [format!("dead.{}.>", settings.stream)];
    let config = json!({ "name": letters, "subjects": subjects });
    bed.api(&format!("STREAM.CREATE.{letters}"), config).await;
    ledger.until_done(1).await;
    assert_eq!(bed.dead_letters(&settings).await.len(), 1);
}

#[tokio::test]
async fn one_that_never_comes_to_an_end_is_put_aside_at_last() {
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.max_deliver = 1;
    settings.ack_wait = Duration::from_millis(200);
    settings.drain_timeout = Duration::from_millis(1);
    let ledger = Ledger::new();
    let acts = |number, _| if number == 0 { Act::Wait } else { Act::Do };
    let subscriptions = bed.open(&settings, ledger.handler(acts)).await;
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..2).await;
    for token in 1..=2 {
        let grant = grant(&partition, token);
        subscriptions
            .assign(&partition, grant.clone())
            .await
            .unwrap();
        ledger.until_tried(token as usize).await;
        // As a crash: nothing is said of the message.
        grant.withdraw();
        subscriptions.revoke(&partition).await;
    }
    subscriptions
        .assign(&partition, grant(&partition, 3))
        .await
        .unwrap();
    ledger.until_done(1).await;
    assert_eq!(ledger.numbers()["p:0"], [1]);
    let letters = bed.dead_letters(&settings).await;
    assert!(
        letters[0].contains("given out 2 times, and never came to an end"),
        "{letters:?}"
    );
}

/// A message as large as the server takes fits among the dead letters, too.
#[tokio::test]
async fn the_largest_message_can_be_put_aside() {
    const LARGEST: usize = 4096;
    let options = NatsOptions::new().max_payload(LARGEST);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let bed = Bed::with(server, None).await;
    let settings = settings(Retention::Workqueue);
    let ledger = Ledger::new();
    let subscriptions = bed
        .open(&settings, ledger.handler(|_, _| Act::Poison))
        .await;
    let partition = shard(0);
    let subject = settings.subject(&partition).unwrap();
    let number = format!("{:0>LARGEST$}", 7);
    let ack = bed.ask(&subject, &number).await;
    assert!(ack["seq"].is_u64(), "{ack}");
    subscriptions
        .assign(&partition, grant(&partition, 1))
        .await
        .unwrap();
    until(SOON, "it is put aside", async || {
        health(&subscriptions, &partition).await.dead_lettered == 1
    })
    .await;
    assert_eq!(bed.dead_letters(&settings).await, [number]);
}

#[tokio::test]
async fn a_message_that_two_services_cannot_handle_is_put_aside_by_both() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let other = SubscriptionSettings {
        name: "audit".to_owned(),
        ..settings.clone()
    };
    let ledger = Ledger::new();
    let (one, partition) = bed
        .owning(&settings, ledger.handler(|_, _| Act::Poison))
        .await;
    let (two, _) = bed.owning(&other, ledger.handler(|_, _| Act::Poison)).await;
    bed.publish(&settings, &partition, 0..1).await;
    for service in [&one, &two] {
        until(SOON, "it is put aside", async || {
            health(service, &partition).await.dead_lettered == 1
        })
        .await;
    }
    let letters = bed.dead_letters(&settings).await;
    for settings in [&settings, &other] {
        let whose = format!("Divvy-Consumer: {}", settings.consumer(&partition).unwrap());
        let of = letters.iter().filter(|letter| letter.contains(&whose));
        assert_eq!(of.count(), 1, "{letters:?}");
    }
}
