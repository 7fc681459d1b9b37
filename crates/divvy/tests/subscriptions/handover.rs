//! Partitions that move.

use std::time::{Duration, Instant};

use divvy::store::StoreSettings;
use divvy::subscriptions::{Mode, Retention, Subscriptions};
use divvy_testbed::until;

use crate::bed::{Act, Bed, Ledger, SOON, grant, settings, shard, shards};

#[tokio::test]
async fn a_revocation_waits_for_the_handler_and_acknowledges_what_it_did() {
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.ack_wait = SOON;
    let ledger = Ledger::new();
    let one = bed.open(&settings, ledger.handler(|_, _| Act::Wait)).await;
    let two = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..3).await;
    one.assign(&partition, grant(&partition, 1)).await.unwrap();
    ledger.until_tried(1).await;
    let revoking = tokio::spawn({
        let (one, partition) = (one.clone(), partition.clone());
        async move { one.revoke(&partition).await }
    });
    until(SOON, "no more is asked for", async || {
        let info = bed.consumer(&settings, &partition).await;
        info["num_waiting"] == 0
    })
    .await;
    assert!(!revoking.is_finished());
    ledger.open_gate();
    revoking.await.unwrap();
    let info = bed.consumer(&settings, &partition).await;
    assert_eq!(info["ack_floor"]["stream_seq"], 1, "{info}");
    assert_eq!(info["num_ack_pending"], 0, "{info}");
    two.assign(&partition, grant(&partition, 2)).await.unwrap();
    ledger.until_done(3).await;
    ledger.check_in_order(&shards(1), 3);
}

#[tokio::test]
async fn a_handler_that_does_not_end_is_cut_off_and_its_message_given_back_at_once() {
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.ack_wait = SOON * 4;
    settings.drain_timeout = Duration::from_millis(50);
    let ledger = Ledger::new();
    let one = bed.open(&settings, ledger.handler(|_, _| Act::Wait)).await;
    let two = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..3).await;
    one.assign(&partition, grant(&partition, 1)).await.unwrap();
    ledger.until_tried(1).await;
    one.revoke(&partition).await;
    two.assign(&partition, grant(&partition, 2)).await.unwrap();
    ledger.until_done(3).await;
    ledger.open_gate();
    let seen = ledger.seen();
    assert_eq!(
        (seen[0].number, seen[0].deliveries, seen[0].token),
        (0, 2, 2)
    );
    ledger.check_in_order(&shards(1), 3);
}

#[tokio::test]
async fn who_lost_its_grant_says_nothing_and_the_next_owner_keeps_the_order() {
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.ack_wait = Duration::from_millis(500);
    let ledger = Ledger::new();
    let one = bed.open(&settings, ledger.handler(|_, _| Act::Wait)).await;
    let two = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..3).await;
    let first = grant(&partition, 1);
    one.assign(&partition, first.clone()).await.unwrap();
    ledger.until_tried(1).await;
    // As a lease that ended: the handler is dropped, and the message waits.
    let lost = Instant::now();
    first.withdraw();
    one.revoke(&partition).await;
    two.assign(&partition, grant(&partition, 2)).await.unwrap();
    ledger.until_done(3).await;
    assert!(lost.elapsed() >= settings.ack_wait / 2, "it was given back");
    ledger.open_gate();
    assert_eq!(ledger.tried(), 4);
    assert!(ledger.seen().iter().all(|seen| seen.token == 2));
    ledger.check_in_order(&shards(1), 3);
}

/// As after a store that was away: the owner goes on with the same token.
#[tokio::test]
async fn the_same_token_again_after_its_grant_ended_is_consumed() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let subscriptions = bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
    let partition = shard(0);
    let first = grant(&partition, 1);
    subscriptions
        .assign(&partition, first.clone())
        .await
        .unwrap();
    bed.publish(&settings, &partition, 0..1).await;
    ledger.until_done(1).await;
    first.withdraw();
    subscriptions
        .assign(&partition, grant(&partition, 1))
        .await
        .unwrap();
    bed.publish(&settings, &partition, 1..3).await;
    ledger.until_done(3).await;
    ledger.check_in_order(&shards(1), 3);
}

/// Verifies that the time which handlers take to end is not taken from what
/// the server needs to answer.
#[tokio::test]
async fn a_handler_that_is_cut_off_casts_no_doubt_on_what_the_others_did() {
    let (bed, mut settings) = (Bed::new().await, settings(Retention::Limits));
    settings.mode = Mode::Concurrent;
    settings.drain_timeout = Duration::from_secs(3);
    let reach = StoreSettings {
        operation_timeout: Duration::from_secs(2),
        ..bed.reach()
    };
    let ledger = Ledger::new();
    let acts = |number, _| if number == 1 { Act::Wait } else { Act::Do };
    let (url, handler) = (bed.url(), ledger.handler(acts));
    let opened = Subscriptions::open(&url, &reach, settings.clone(), handler);
    let subscriptions = opened.await.unwrap();
    let partition = shard(0);
    bed.publish(&settings, &partition, 0..3).await;
    let granted = grant(&partition, 1);
    subscriptions.assign(&partition, granted).await.unwrap();
    ledger.until_tried(3).await;
    subscriptions.revoke(&partition).await;
    let page = subscriptions.render_metrics("w");
    let line = "divvy_subscription_errors_total{worker=\"w\"} 0";
    assert!(page.lines().any(|found| found == line), "{page}");
}

/// Verifies that a thousand moves, under way all the time, neither lose nor
/// repeat nor reorder a message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_hand_overs_repeat_nothing() {
    const PARTITIONS: u32 = 10;
    const MOVES: i64 = 100;
    const EACH: u32 = 200;
    let (bed, settings) = (Bed::new().await, settings(Retention::Limits));
    let ledger = Ledger::new();
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(bed.open(&settings, ledger.handler(|_, _| Act::Do)).await);
    }
    let all = shards(PARTITIONS);
    let publishing = async {
        for number in 0..EACH {
            for partition in &all {
                bed.publish(&settings, partition, [number]).await;
            }
        }
    };
    let moving = async {
        let mut moving = tokio::task::JoinSet::new();
        for partition in &all {
            let (workers, partition) = (workers.clone(), partition.clone());
            moving.spawn(async move {
                for turn in 0..MOVES {
                    let owner = &workers[turn as usize % workers.len()];
                    let grant = grant(&partition, turn + 1);
                    owner.assign(&partition, grant).await.unwrap();
                    // A few messages between two moves, or none.
                    for _ in 0..turn % 50 {
                        tokio::task::yield_now().await;
                    }
                    owner.revoke(&partition).await;
                }
                let owner = &workers[0];
                owner
                    .assign(&partition, grant(&partition, MOVES + 1))
                    .await
                    .unwrap();
            });
        }
        moving.join_all().await;
    };
    tokio::join!(publishing, moving);
    ledger.until_done((PARTITIONS * EACH) as usize).await;
    for worker in workers {
        worker.close().await;
    }
    ledger.check_in_order(&all, EACH);
    let seen = ledger.seen();
    let tokens = |name: &str| {
        let of = seen.iter().filter(|seen| seen.partition == name);
        of.map(|seen| seen.token).collect::<Vec<_>>()
    };
    assert!(
        all.iter()
            .all(|partition| tokens(partition.as_str()).is_sorted())
    );
    assert_eq!(bed.consumers(&settings).await.len(), PARTITIONS as usize);
}
