//! How long leader mode pauses work when its store restarts.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use std::time::Duration;

use cluster::Cluster;
use divvy_core::leader::{Event, LeaderSettings};
use divvy_core::store::{Incarnation, KeyValueTable};

/// How the store comes back after an outage.
#[derive(Debug, Clone, Copy)]
struct Restart {
    /// How long nobody reaches it.
    outage: Duration,
    /// How much later than the one before it each member reaches it again.
    apart: Duration,
    keeps_data: bool,
    leader_lives: bool,
}

/// How long after the outage began everything is owned again, by those who live.
fn paused_for(restart: Restart) -> Duration {
    let mut cluster = Cluster::settled(LeaderSettings::default(), 3, 12);
    let leader = cluster.leader().unwrap();
    let begun = cluster.now;
    if !restart.leader_lives {
        cluster.kill(leader);
    }
    for node in &mut cluster.nodes {
        node.is_cut = true;
    }
    cluster.run(restart.outage);
    cluster.incarnation = Incarnation::new("second");
    if !restart.keeps_data {
        cluster.table = KeyValueTable::default();
    }
    // Whoever leads is the last to know that the store is there again.
    for node in [1, 2, 0].map(|ahead| (leader + ahead) % 3) {
        cluster.nodes[node].is_cut = false;
        cluster.tell(node, Event::Connected(cluster.incarnation.clone()));
        cluster.run(restart.apart);
    }
    while !cluster.is_owned() {
        cluster.run(Duration::from_millis(1));
        let paused = cluster.now - begun;
        assert!(paused < Duration::from_mins(2), "{restart:?}: {paused:?}");
    }
    cluster.now - begun
}

#[test]
fn a_restarted_store_pauses_work_for_its_outage_a_lease_and_two_seconds_and_a_lead_if_the_leader_died()
 {
    let settings = LeaderSettings::default();
    let lease = LeaderSettings::observed(settings.heartbeat_ttl);
    let lead = LeaderSettings::observed(settings.leader_lease);
    for outage_ms in [0, 500, 1_500, 3_000, 5_000, 9_000, 20_000] {
        for apart_ms in [0, 100, 300] {
            for (keeps_data, leader_lives) in
                [(true, true), (true, false), (false, true), (false, false)]
            {
                let restart = Restart {
                    outage: Duration::from_millis(outage_ms),
                    apart: Duration::from_millis(apart_ms),
                    keeps_data,
                    leader_lives,
                };
                // The outage lasts until the last of them reaches the store.
                let away = restart.outage + restart.apart * 2;
                let mut most = away + lease + Duration::from_secs(2);
                if !leader_lives {
                    most += lead;
                }
                let paused = paused_for(restart);
                assert!(paused <= most, "{restart:?}: {paused:?}, not {most:?}");
            }
        }
    }
}
