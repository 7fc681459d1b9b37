//! Leader mode with nothing but members and a table: what a cluster does when
//! its members come, go and crash.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use std::time::Duration;

use cluster::{Cluster, TRIP};
use divvy_core::leader::{LeaderSettings, Shutdown, State, StoreOutage};

fn fast() -> LeaderSettings {
    LeaderSettings::fast()
}

#[test]
fn one_member_alone_gets_everything() {
    let cluster = Cluster::settled(fast(), 1, 8);
    assert_eq!(cluster.counts(), [8]);
    assert_eq!(cluster.nodes[0].member.state(), State::Stable);
    assert!(cluster.nodes[0].member.is_leader());
}

#[test]
fn three_members_that_start_together_share_from_the_first_root_on() {
    let cluster = Cluster::settled(fast(), 3, 12);
    assert_eq!(cluster.counts(), [4, 4, 4]);
    assert_eq!(cluster.history.len(), 12, "nothing moved twice");
    let ids: std::collections::BTreeSet<_> = cluster
        .nodes
        .iter()
        .map(|node| node.member.worker_id().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 3);
    assert!(cluster.nodes.iter().all(|node| node.problems.is_empty()));
}

#[test]
fn partitions_of_a_crashed_worker_run_elsewhere_within_a_lease_and_little_more() {
    for crashed in 0..3 {
        let mut cluster = Cluster::settled(fast(), 3, 12);
        cluster.kill(crashed);
        let mut waited = Duration::ZERO;
        while !cluster.is_owned() {
            cluster.run(Duration::from_millis(1));
            waited += Duration::from_millis(1);
            assert!(waited < Duration::from_millis(900), "{crashed} of 3");
        }
        assert_eq!(cluster.history.len(), 16, "only what it had was started");
    }
}

#[test]
fn a_leader_that_crashes_right_after_a_join_is_replaced_as_fast_as_any() {
    let most = LeaderSettings::observed(fast().heartbeat_ttl) + Duration::from_millis(50);
    let mut cluster = Cluster::settled(fast(), 8, 64);
    for round in 0..40 {
        // Who stands by changes with the root that first names the joiner.
        let joined = cluster.join(&format!("late-{round}"));
        while cluster.nodes[joined].runs.is_empty() {
            cluster.run(TRIP);
        }
        let leader = cluster.leader().unwrap();
        cluster.kill(leader);
        let died = cluster.now;
        while !cluster.is_owned() {
            cluster.run(TRIP);
            let waited = cluster.now - died;
            assert!(waited < most, "round {round}: idle for {waited:?}");
        }
    }
}

#[test]
fn a_new_worker_gets_its_share_in_one_rebalance() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    cluster.join("host-3");
    cluster.run(fast().planned_scale_window * 3);
    cluster.settle();
    assert_eq!(cluster.counts(), [3, 3, 3, 3]);
    assert_eq!(cluster.history.len(), 12 + 3, "the fewest moves");
}

#[test]
fn who_is_back_after_its_partitions_were_handed_on_gets_a_share_again() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let lost = (leader + 1) % 3;
    let instance = format!("host-{lost}");
    cluster.kill(lost);
    while cluster.counts().iter().sum::<usize>() < 12 {
        cluster.run(Duration::from_millis(1));
    }
    // Before the window of its loss has closed.
    let back = cluster.join(&instance);
    cluster.run(fast().planned_scale_window * 3 + fast().rebalance_cooldown);
    cluster.settle();
    assert_eq!(cluster.counts()[back], 4);
}

#[test]
fn a_planned_move_takes_four_round_trips_and_the_hook() {
    let mut cluster = Cluster::settled(fast(), 2, 8);
    let node = cluster.join("host-2");
    let mut revoked = None;
    let mut started = None;
    for _ in 0..2_000 {
        cluster.run(Duration::from_micros(500));
        let running: usize = cluster.counts().iter().sum();
        if running < 8 && revoked.is_none() {
            revoked = Some(cluster.now);
        }
        if cluster.nodes[node].starts > 0 && started.is_none() {
            started = Some(cluster.now);
        }
    }
    let took = started.expect("it starts") - revoked.expect("it is asked back");
    assert!(took <= TRIP * 4 + Duration::from_millis(1), "{took:?}");
}

#[test]
fn a_worker_that_leaves_hands_on_at_once() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leaver = (cluster.leader().unwrap() + 1) % 3;
    cluster.stop(leaver, Shutdown::Leave);
    cluster.run(Duration::from_millis(40));
    assert!(cluster.nodes[leaver].ended);
    assert!(cluster.is_owned());
}

#[test]
fn a_leader_that_leaves_is_replaced_at_once() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leaver = cluster.leader().unwrap();
    cluster.stop(leaver, Shutdown::Leave);
    cluster.run(Duration::from_millis(250));
    assert!(cluster.nodes[leaver].ended);
    assert!(cluster.is_owned());
}

#[test]
fn a_worker_that_returns_in_time_gets_back_what_it_had() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let before = cluster.owners();
    for node in 0..3 {
        let within = Duration::from_secs(5);
        cluster.stop(node, Shutdown::Return { within });
        cluster.run(Duration::from_secs(1));
        assert!(cluster.nodes[node].ended);
        cluster.join(&format!("host-{node}"));
        cluster.run(Duration::from_secs(1));
        cluster.settle();
        assert_eq!(cluster.owners(), before, "after the restart of {node}");
    }
}

#[test]
fn a_worker_that_does_not_return_loses_what_it_had() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let within = Duration::from_secs(5);
    let leaver = (cluster.leader().unwrap() + 1) % 3;
    cluster.stop(leaver, Shutdown::Return { within });
    cluster.run(Duration::from_millis(4_900));
    assert!(!cluster.is_owned());
    cluster.run(Duration::from_millis(300));
    assert!(cluster.is_owned());
}

#[test]
fn a_rolling_restart_of_100_workers_moves_nothing() {
    let mut cluster = Cluster::settled(fast(), 100, 300);
    let before = cluster.owners();
    for node in 0..100 {
        let within = Duration::from_secs(10);
        cluster.stop(node, Shutdown::Return { within });
        cluster.run(Duration::from_millis(200));
        cluster.join(&format!("host-{node}"));
        cluster.run(Duration::from_millis(500));
    }
    cluster.settle();
    assert_eq!(cluster.owners(), before);
}

#[test]
fn at_rest_a_cluster_writes_beats_and_nothing_else() {
    let mut cluster = Cluster::settled(LeaderSettings::default(), 3, 12);
    cluster.run(Duration::from_secs(120));
    let (writes, starts) = (cluster.writes, cluster.history.len());
    cluster.run(Duration::from_secs(600));
    assert_eq!(cluster.history.len(), starts);
    let beats = 600.0 / 0.75 + 3.0 * 600.0 / (2.0 * 15.0 / 16.0);
    let written = (cluster.writes - writes) as f64;
    assert!((written / beats - 1.0).abs() < 0.02, "{written} of {beats}");
}

#[test]
fn a_member_that_cannot_reach_the_store_stops_by_its_deadline() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let node = (cluster.leader().unwrap() + 1) % 3;
    cluster.nodes[node].is_cut = true;
    cluster.run(fast().heartbeat_ttl);
    assert!(cluster.nodes[node].runs.is_empty());
    cluster.run(fast().heartbeat_ttl);
    assert!(cluster.is_owned(), "the others have it");
    cluster.nodes[node].is_cut = false;
    cluster.run(Duration::from_secs(3));
    cluster.settle();
    assert_eq!(cluster.counts(), [4, 4, 4]);
}

#[test]
fn a_store_that_stalls_for_everybody_moves_nothing() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let before = cluster.owners();
    for node in 0..3 {
        cluster.nodes[node].is_cut = true;
    }
    cluster.run(fast().heartbeat_ttl * 3);
    assert_eq!(cluster.counts(), [0, 0, 0]);
    for node in 0..3 {
        cluster.nodes[node].is_cut = false;
    }
    cluster.run(Duration::from_secs(3));
    cluster.settle();
    assert_eq!(cluster.owners(), before);
}

#[test]
fn with_calm_a_store_that_stalls_for_nine_seconds_interrupts_nothing() {
    let calm = LeaderSettings::calm();
    let steps = 20;
    for step in 0..steps {
        let mut cluster = Cluster::settled(calm.clone(), 3, 12);
        cluster.run(calm.heartbeat_interval * step / steps);
        let (before, started) = (cluster.owners(), cluster.history.len());
        for node in 0..3 {
            cluster.nodes[node].is_cut = true;
        }
        cluster.run(Duration::from_secs(9));
        for node in 0..3 {
            cluster.nodes[node].is_cut = false;
        }
        cluster.run(calm.heartbeat_ttl * 3);
        assert_eq!(cluster.owners(), before, "step {step}");
        assert_eq!(cluster.history.len(), started, "step {step}");
    }
}

fn overlapping() -> LeaderSettings {
    LeaderSettings {
        store_outage: StoreOutage::Overlap,
        ..fast()
    }
}

#[test]
fn where_overlap_is_allowed_work_goes_on_without_the_store() {
    let mut cluster = Cluster::settled(overlapping(), 3, 12);
    let (before, started) = (cluster.owners(), cluster.history.len());
    for node in 0..3 {
        cluster.nodes[node].is_cut = true;
    }
    for _ in 0..30 {
        cluster.run(fast().heartbeat_ttl / 10);
        assert!(cluster.is_owned());
    }
    for node in 0..3 {
        cluster.nodes[node].is_cut = false;
    }
    cluster.run(Duration::from_secs(3));
    cluster.settle();
    assert_eq!(cluster.owners(), before);
    assert_eq!(cluster.history.len(), started, "nothing was stopped");
}

#[test]
fn where_overlap_is_allowed_who_was_cut_off_stops_once_it_learns_who_follows() {
    let mut cluster = Cluster::settled(overlapping(), 3, 12);
    let node = (cluster.leader().unwrap() + 1) % 3;
    let had = cluster.nodes[node].runs.clone();
    cluster.nodes[node].is_cut = true;
    cluster.run(fast().heartbeat_ttl * 3);
    assert_eq!(cluster.nodes[node].runs, had, "it works on");
    for (partition, token) in &had {
        let others = cluster.nodes.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != node);
        let next = others.find_map(|(_, other)| other.runs.get(partition));
        assert!(next.is_some_and(|next| next > token), "{partition}");
    }
    cluster.nodes[node].is_cut = false;
    cluster.run(Duration::from_secs(3));
    cluster.settle();
    assert_eq!(cluster.counts(), [4, 4, 4]);
}
