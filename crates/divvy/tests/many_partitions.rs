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

use std::time::Duration;

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
