//! Many workers, and a cluster of servers that loses one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use divvy::manager::{EventKind, Manager, Settings, Shutdown, StaticSource, StoreChoice};
use divvy::store::{Key, StoreSettings, StoreUrl, open_key_value};
use divvy::{Balanced, Partitions};
use divvy_testbed::{NatsCluster, NatsVersion, until, until_some};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// As many as a cluster starts with at most: nobody's start fails, and one
/// root grants everything.
pub(crate) async fn sixty_four_start_at_once(bed: Bed) {
    let mut fleet = Fleet::new(bed, 640);
    fleet.settings.leader.expected_workers = Some(64);
    // So many threads in one process take turns.
    fleet.settings.leader.heartbeat_ttl = Duration::from_secs(6);
    fleet.settings.leader.heartbeat_interval = Duration::from_secs(1);
    fleet.settings.leader.leader_lease = Duration::from_secs(3);
    fleet.settings.leader.cold_start_window = Duration::from_secs(30);
    fleet.join_many(64).await;
    fleet.owned().await;
    assert_eq!(fleet.counts(), [10; 64]);
    fleet.granted_once().await;
    fleet.end().await;
}

/// Writes without pause until it is dropped, and counts.
fn load(url: &StoreUrl, store: &StoreSettings, count: &Arc<AtomicUsize>) -> JoinSet<()> {
    let settings = StoreSettings {
        cluster: "load".to_owned(),
        ..store.clone()
    };
    let (url, count) = (url.clone(), Arc::clone(count));
    let mut writing = JoinSet::new();
    writing.spawn(async move {
        let opened = open_key_value(&url, &settings).await.unwrap();
        let key = Key::new(["counter"]).unwrap();
        loop {
            let known = opened.get(&key).await;
            let Ok(known) = known.map(|known| known.map(|entry| entry.revision)) else {
                continue;
            };
            if opened
                .compare_and_set(&key, known.into(), b"x")
                .await
                .is_ok()
            {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    writing
}

/// Three servers hold the bucket, which three workers make at once, and the one
/// that leads it is killed under load. Writes stall for seconds; then leases are
/// renewed, and no work was interrupted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_calm_the_loss_of_the_leader_of_a_replicated_bucket_interrupts_nothing() {
    let mut cluster = NatsCluster::start(NatsVersion::Newest, 3).await;
    let partitions = Partitions::shards([("p", 30)]).unwrap();
    let (told, mut heard) = mpsc::channel(1 << 16);
    let store = StoreSettings {
        cluster: "tests".to_owned(),
        connect_timeout: Duration::from_secs(60),
        operation_timeout: Duration::from_secs(5),
        replicas: 3,
        ..StoreSettings::default()
    };
    let url: StoreUrl = cluster.url().parse().unwrap();
    let mut managers = Vec::new();
    for number in 0..3 {
        let mut settings = Settings {
            instance: Some(format!("host-{number}")),
            ..Settings::calm()
        };
        settings.leader.startup_timeout = SOON * 2;
        settings.leader.cold_start_window = Duration::from_secs(5);
        settings.leader.expected_workers = Some(3);
        let choice = StoreChoice::from((url.clone(), store.clone()));
        let builder = Manager::builder(choice, StaticSource::new(partitions.clone()))
            .settings(settings)
            .strategy(Balanced::new())
            .events(told.clone());
        managers.push(tokio::spawn(builder.start()));
    }
    let mut started = Vec::new();
    for manager in managers {
        started.push(manager.await.unwrap().unwrap());
    }
    let owned = || {
        let counts = started
            .iter()
            .map(|manager| manager.current_assignment().partitions.len());
        counts.sum::<usize>()
    };
    until(SOON * 2, "all are owned", async || owned() == 30).await;
    let written = Arc::new(AtomicUsize::new(0));
    let writing = load(&url, &store, &written);
    until(SOON, "load", async || written.load(Ordering::Relaxed) > 100).await;
    while heard.try_recv().is_ok() {}
    let leader = until_some(SOON, "a leader of the bucket", async || {
        cluster.leader_of("KV_divvy").await
    });
    let leader = leader.await;
    cluster.server(leader).kill();
    let before = written.load(Ordering::Relaxed);
    let (mut renewals, mut revoked) = (0, 0);
    until(SOON * 2, "leases are renewed again", async || {
        while let Ok(event) = heard.try_recv() {
            match event.kind {
                EventKind::Deadline { until: Some(_), .. } => renewals += 1,
                EventKind::Revoked { .. } => revoked += 1,
                _ => {}
            }
        }
        // More than were under way, by all of them.
        renewals >= 24 && written.load(Ordering::Relaxed) > before + 100
    })
    .await;
    assert_eq!((revoked, owned()), (0, 30));
    drop(writing);
    for manager in started {
        manager.stop(Shutdown::Leave).await.unwrap();
    }
}
