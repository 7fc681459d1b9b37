//! As many partitions as a cluster has at most, on a real server.

#[expect(dead_code, reason = "shared with the tests of managers")]
#[path = "manager/bed.rs"]
mod bed;
#[path = "manager/chronicle.rs"]
mod chronicle;
#[expect(dead_code, reason = "shared with the tests of managers")]
#[path = "manager/fleet.rs"]
mod fleet;
#[path = "manager/recorder.rs"]
mod recorder;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::{Hooks, Manager, ManagerError, Overdue, Settings, Shutdown, StaticSource};
use divvy::store::MemoryKeyValue;
use divvy_testbed::until;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// More than one message of a server holds, and more than hooks run at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_are_shared_on_nats() {
    let mut fleet = Fleet::new(Bed::nats().await, 100_000);
    fleet.settings.leader.expected_workers = Some(2);
    fleet.settings.leader.heartbeat_ttl = Duration::from_secs(20);
    fleet.settings.leader.heartbeat_interval = Duration::from_secs(1);
    fleet.settings.leader.leader_lease = Duration::from_secs(10);
    fleet.join_many(2).await;
    let views = fleet.views();
    until(SOON * 3, "all are owned", async || {
        let counts = views
            .iter()
            .map(|view| view.current_assignment().partitions.len());
        counts.sum::<usize>() == 100_000
    })
    .await;
    assert_eq!(fleet.counts(), [50_000; 2]);
    fleet.end().await;
}

/// Remembers what went wrong.
#[derive(Default)]
struct Wrong(Mutex<Vec<String>>);

#[async_trait]
impl Hooks for Wrong {
    async fn error(&self, error: &ManagerError) {
        self.0.lock().unwrap().push(error.to_string());
    }
}

/// However slow the machine is: a view that is made anew for every partition
/// that stops would take many times as long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_owns_a_hundred_thousand_keeps_its_lease_and_stops_in_order() {
    let mut settings = Settings::default();
    settings.leader.expected_workers = Some(1);
    settings.leader.heartbeat_ttl = Duration::from_secs(20);
    settings.leader.leader_lease = Duration::from_secs(10);
    settings.leader.shutdown_timeout = SOON * 2;
    // The process that would be ended is the test's.
    settings.leader.overdue = Overdue::Report;
    let source = StaticSource::shards(["p"], 100_000).unwrap();
    let wrong = Arc::new(Wrong::default());
    let builder = Manager::builder(MemoryKeyValue::new(), source);
    let builder = builder.settings(settings).hooks(Arc::clone(&wrong));
    let manager = builder.start().await.unwrap();
    until(SOON * 3, "all are owned", async || {
        manager.current_assignment().partitions.len() == 100_000
    })
    .await;
    manager.stop(Shutdown::Leave).await.unwrap();
    assert_eq!(*wrong.0.lock().unwrap(), Vec::<String>::new());
}
