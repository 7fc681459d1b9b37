//! Several messages of a partition at once.

use divvy::subscriptions::{Mode, Retention, SubscriptionSettings};
use divvy_testbed::until;

use crate::bed::{Act, Bed, Ledger, RETENTIONS, SOON, grant, settings, shard, shards};

fn concurrent(retention: Retention) -> SubscriptionSettings {
    SubscriptionSettings {
        mode: Mode::Concurrent,
        max_in_flight: 8,
        batch: 5,
        ..settings(retention)
    }
}

#[tokio::test]
async fn no_more_is_in_flight_than_may_be_and_everything_is_done_once() {
    for retention in RETENTIONS {
        let (bed, settings) = (Bed::new().await, concurrent(retention));
        let ledger = Ledger::new();
        let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Wait)).await;
        subscriptions.ensure(&shards(1)).await.unwrap();
        let partition = shard(0);
        bed.publish(&settings, &partition, 0..100).await;
        subscriptions
            .assign(&partition, grant(&partition, 1))
            .await
            .unwrap();
        ledger.until_tried(8).await;
        let info = bed.consumer(&settings, &partition).await;
        assert_eq!(info["num_ack_pending"], 8, "{info}");
        assert_eq!(info["num_pending"], 92, "{info}");
        ledger.open_gate();
        ledger.until_done(100).await;
        subscriptions.close().await;
        let mut numbers = ledger.numbers()["p:0"].clone();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
        assert!(ledger.most_at_once() <= 8);
    }
}

#[tokio::test]
async fn handlers_of_all_partitions_together_are_bounded() {
    let (bed, mut settings) = (Bed::new().await, concurrent(Retention::Limits));
    settings.max_handlers = 5;
    let ledger = Ledger::new();
    let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Wait)).await;
    for partition in &shards(3) {
        bed.publish(&settings, partition, 0..20).await;
        let grant = grant(partition, 1);
        subscriptions.assign(partition, grant).await.unwrap();
    }
    until(SOON, "all of them wait", async || {
        let in_flight = subscriptions
            .health()
            .iter()
            .map(|h| h.in_flight)
            .sum::<u64>();
        in_flight == 24
    })
    .await;
    assert_eq!(ledger.tried(), 5);
    ledger.open_gate();
    ledger.until_done(60).await;
    assert_eq!(ledger.most_at_once(), 5);
    assert_eq!(ledger.tried(), 60);
}

#[tokio::test]
async fn a_failing_message_holds_up_nobody_else() {
    let (bed, settings) = (Bed::new().await, concurrent(Retention::Limits));
    let ledger = Ledger::new();
    let acts = |number, deliveries| match (number, deliveries) {
        (0, 1..=3) => Act::Fail,
        _ => Act::Do,
    };
    let subscriptions = bed.open(&settings, ledger.handler(acts)).await;
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..20).await;
    subscriptions
        .assign(&partition, grant(&partition, 1))
        .await
        .unwrap();
    ledger.until_done(20).await;
    let numbers = ledger.numbers()["p:0"].clone();
    assert_ne!(numbers[0], 0);
    assert_eq!(ledger.tried(), 23);
}

#[tokio::test]
async fn what_has_not_begun_is_given_back_at_once() {
    let (bed, mut settings) = (Bed::new().await, concurrent(Retention::Limits));
    // Whoever waited for it would find out.
    settings.ack_wait = SOON * 4;
    settings.max_handlers = 2;
    let ledger = Ledger::new();
    let one = bed.open(&settings, ledger.handler(|_, _| Act::Wait)).await;
    let two = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..20).await;
    one.assign(&partition, grant(&partition, 1)).await.unwrap();
    until(SOON, "messages wait", async || {
        one.health().iter().all(|health| health.in_flight == 8)
    })
    .await;
    let opening = async {
        let revoking = one.revoke(&partition);
        let open = async { ledger.open_gate() };
        tokio::join!(revoking, open);
    };
    opening.await;
    two.assign(&partition, grant(&partition, 2)).await.unwrap();
    ledger.until_done(20).await;
    let mut numbers = ledger.numbers()["p:0"].clone();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}
