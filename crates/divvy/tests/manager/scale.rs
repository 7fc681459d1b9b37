//! Many workers.

use std::time::Duration;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// As many as a cluster starts with at most: nobody's start fails, and one
/// root grants everything.
pub(crate) async fn sixty_four_start_at_once(bed: Bed) {
    // Each opens its store itself, all at once; in memory there is nothing to open.
    let is_recorded = matches!(bed, Bed::Memory(_));
    let mut fleet = Fleet::new(bed, 640);
    fleet.is_recorded = is_recorded;
    fleet.settings.leader.expected_workers = Some(64);
    // So many threads in one process take turns.
    fleet.settings.leader.heartbeat_ttl = Duration::from_secs(6);
    fleet.settings.leader.heartbeat_interval = Duration::from_secs(1);
    fleet.settings.leader.leader_lease = Duration::from_secs(3);
    fleet.settings.leader.operation_timeout = Duration::from_secs(5);
    fleet.settings.leader.startup_timeout = SOON * 2;
    fleet.settings.leader.cold_start_window = Duration::from_secs(30);
    fleet.join_many(64).await;
    fleet.owned().await;
    assert_eq!(fleet.counts(), [10; 64]);
    fleet.granted_once().await;
    fleet.end().await;
}
