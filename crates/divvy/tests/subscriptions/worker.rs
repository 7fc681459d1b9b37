//! Subscriptions as the hooks of managers.

use std::time::Duration;

use divvy::Balanced;
use divvy::manager::{Manager, Settings, Shutdown, StaticSource};
use divvy::subscriptions::{Retention, Subscriptions};
use divvy_testbed::until;

use crate::bed::{Act, Bed, Ledger, RETENTIONS, SOON, settings, shards};

const PARTITIONS: u32 = 12;

async fn join(bed: &Bed, name: &str, subscriptions: &Subscriptions) -> Manager {
    let mut settings = Settings::fast();
    settings.instance = Some(name.to_owned());
    settings.leader.heartbeat_interval = Duration::from_millis(400);
    settings.leader.heartbeat_ttl = Duration::from_secs(3);
    settings.leader.leader_lease = Duration::from_millis(1500);
    settings.leader.startup_timeout = SOON;
    settings.leader.shutdown_timeout = SOON;
    settings.leader.stop_deadline = SOON;
    let source = StaticSource::new(shards(PARTITIONS));
    Manager::builder((bed.url(), bed.reach()), source)
        .settings(settings)
        .strategy(Balanced::new())
        .hooks(subscriptions.clone())
        .start()
        .await
        .unwrap()
}

/// Verifies that workers which join and leave, on every kind of stream, handle
/// every message once and in order, under tokens that rise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_come_and_go_handle_every_message_once() {
    for retention in RETENTIONS {
        let (bed, settings) = (Bed::new().await, settings(retention));
        let ledger = Ledger::new();
        let all = shards(PARTITIONS);
        let open = async || bed.open(&settings, ledger.handler(|_, _| Act::Do)).await;
        let (one, two) = (open().await, open().await);
        one.ensure(&all).await.unwrap();
        let publish = async |numbers: std::ops::Range<u32>| {
            for number in numbers {
                for partition in &all {
                    bed.publish(&settings, partition, [number]).await;
                }
            }
        };
        let changing = async {
            let first = join(&bed, "one", &one).await;
            let second = join(&bed, "two", &two).await;
            until(SOON, "both own something", async || {
                one.health().len() == 6 && two.health().len() == 6
            })
            .await;
            first.stop(Shutdown::Leave).await.unwrap();
            let first = join(&bed, "three", &one).await;
            until(SOON, "both own something again", async || {
                one.health().len() == 6 && two.health().len() == 6
            })
            .await;
            (first, second)
        };
        let ((), (first, second)) = tokio::join!(publish(0..30), changing);
        publish(30..40).await;
        ledger.until_done(PARTITIONS as usize * 40).await;
        first.stop(Shutdown::Leave).await.unwrap();
        second.stop(Shutdown::Leave).await.unwrap();
        ledger.check_in_order(&all, 40);
        for partition in &all {
            let seen = ledger.seen();
            let own = seen
                .iter()
                .filter(|seen| seen.partition == partition.as_str());
            assert!(own.map(|seen| seen.token).is_sorted(), "{partition}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_makes_the_consumers_of_all_partitions() {
    let (bed, settings) = (Bed::new().await, settings(Retention::Interest));
    let handler = Ledger::new().handler(|_, _| Act::Do);
    let more = shards(PARTITIONS + 5);
    let subscriptions = bed.open(&settings, handler).await;
    let subscriptions = subscriptions.ensuring(StaticSource::new(more.clone()));
    let manager = join(&bed, "one", &subscriptions).await;
    until(SOON, "they are all there", async || {
        bed.consumers(&settings).await.len() == more.len()
    })
    .await;
    manager.stop(Shutdown::Leave).await.unwrap();
}
