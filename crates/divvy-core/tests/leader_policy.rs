//! Leader mode: when a leader acts at once, and what it waits for.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;
mod logs;

use std::sync::Arc;
use std::time::Duration;

use cluster::Cluster;
use divvy_core::leader::{
    Event, LeaderSettings, Life, Lifecycle, Member, SelfDescription, Shutdown, State, Wait,
    WorkerRecord,
};
use divvy_core::store::{Change, Key};
use divvy_core::{
    Assignment, Balanced, Error, Health, MoveEntry, Partition, Partitions, Strategy,
    WeightedConsistentHash, Workers,
};
use logs::debug_lines_of;

fn fast() -> LeaderSettings {
    LeaderSettings::fast()
}

/// Steps of a millisecond until something is so; how many it took.
#[track_caller]
fn until(cluster: &mut Cluster, most: Duration, is_so: impl Fn(&Cluster) -> bool) -> Duration {
    let step = Duration::from_millis(1);
    let mut waited = Duration::ZERO;
    while !is_so(cluster) {
        assert!(waited < most, "not within {most:?}");
        cluster.run(step);
        waited += step;
    }
    waited
}

fn moves(cluster: &Cluster) -> Vec<MoveEntry> {
    let log = cluster.table.get(&Key::new(["moves"]).unwrap()).unwrap();
    MoveEntry::decode_log(&log.value).unwrap()
}

#[test]
fn a_member_passes_through_the_states_in_order() {
    let cluster = Cluster::settled(fast(), 1, 4);
    let states: Vec<State> = cluster.nodes[0].states.clone();
    let first = [State::ClaimingId, State::Election];
    assert_eq!(states[..2], first, "{states:?}");
    assert_eq!(states.last(), Some(&State::Stable), "{states:?}");
    assert!(states.contains(&State::Scaling), "{states:?}");
    assert!(states.contains(&State::Rebalancing), "{states:?}");
    assert!(!states.contains(&State::Emergency), "{states:?}");
    let mut follower = Cluster::settled(fast(), 1, 4);
    follower.join("late");
    follower.settle();
    let states = &follower.nodes[1].states;
    let path = [
        State::ClaimingId,
        State::Election,
        State::WaitingAssignment,
        State::Stable,
        State::Rebalancing,
        State::Stable,
    ];
    assert_eq!(*states, path);
    follower.stop(1, Shutdown::Leave);
    assert_eq!(follower.nodes[1].states.last(), Some(&State::Shutdown));
}

#[test]
fn followers_show_that_the_cluster_waits_for_workers_and_that_partitions_move() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let leader = cluster.leader().unwrap();
    let followers = || (0..3).filter(|node| *node != leader);
    for node in followers() {
        let states = &cluster.nodes[node].states;
        assert!(states.contains(&State::Scaling), "{states:?}");
        assert_eq!(states.last(), Some(&State::Stable), "{states:?}");
    }
    for node in &mut cluster.nodes {
        node.states.clear();
    }
    cluster.join("host-3");
    cluster.settle();
    for node in followers() {
        let states = &cluster.nodes[node].states;
        assert_eq!(*states, [State::Rebalancing, State::Stable]);
    }
}

#[test]
fn a_cluster_lives_through_cold_start_and_the_first_assignment_to_an_ordinary_life() {
    let mut cluster = Cluster::new(fast(), 4);
    cluster.join("host-0");
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        cluster.run(Duration::from_millis(1));
        let now = cluster.nodes[0].member.adopted().map(|(_, life)| life);
        if now.is_some() && seen.last() != now.as_ref() {
            seen.extend(now);
        }
    }
    let all = [
        Lifecycle::ColdStart,
        Lifecycle::PostColdStart,
        Lifecycle::Stable,
    ];
    assert_eq!(seen, all);
}

#[test]
fn a_first_start_tells_the_quarantine_and_when_it_ends() {
    let mut cluster = Cluster::new(LeaderSettings::default(), 4);
    cluster.join("host-0");
    cluster.join("host-1");
    let waits = |cluster: &Cluster| {
        let members = cluster.nodes.iter().map(|node| &node.member);
        members.filter_map(Member::waits_for).collect::<Vec<_>>()
    };
    let soon = Duration::from_secs(5);
    until(&mut cluster, soon, |cluster| waits(cluster).len() == 2);
    let told = waits(&cluster);
    assert_eq!(told[0].0, Wait::Quarantine);
    assert_eq!(told[1].0, Wait::Quarantine);
    let end = told[0].1.max(told[1].1).to_origin();
    let left = end - cluster.now + Duration::from_secs(1);
    until(&mut cluster, left, Cluster::is_owned);
    assert!(
        cluster.now + Duration::from_secs(1) > end,
        "{end:?} was too late"
    );
    assert_eq!(waits(&cluster), []);
}

#[test]
fn a_planned_join_waits_for_its_window_and_several_make_one_rebalance() {
    let mut cluster = Cluster::settled(fast(), 2, 12);
    let starts = cluster.history.len();
    cluster.join("host-2");
    cluster.run(fast().planned_scale_window * 2 / 3);
    cluster.join("host-3");
    assert_eq!(cluster.history.len(), starts, "the window is open");
    let leader = cluster.leader().unwrap();
    assert_eq!(cluster.nodes[leader].member.state(), State::Scaling);
    cluster.run(fast().planned_scale_window);
    assert_eq!(cluster.counts(), [3, 3, 3, 3]);
    assert_eq!(cluster.history.len(), starts + 6, "nothing moved twice");
}

#[test]
fn a_cold_start_closes_early_when_all_who_are_expected_are_there() {
    let mut settings = LeaderSettings {
        store_forgets: false,
        expected_workers: Some(3),
        ..LeaderSettings::default()
    };
    let mut cluster = Cluster::new(settings.clone(), 12);
    for host in ["a", "b", "c"] {
        cluster.join(host);
    }
    let expected = until(&mut cluster, Duration::from_secs(30), Cluster::is_owned);
    settings.expected_workers = None;
    let mut cluster = Cluster::new(settings.clone(), 12);
    for host in ["a", "b", "c"] {
        cluster.join(host);
    }
    let quiet = until(&mut cluster, Duration::from_secs(30), Cluster::is_owned);
    assert!(expected < Duration::from_secs(1), "{expected:?}");
    let beats = settings.heartbeat_interval * 3;
    assert!(
        quiet > beats && quiet < beats + Duration::from_secs(2),
        "{quiet:?}"
    );
}

#[test]
fn a_cold_start_that_never_gets_quiet_ends_with_its_window() {
    let mut settings = fast();
    settings.store_forgets = false;
    let mut cluster = Cluster::new(settings.clone(), 12);
    let mut waited = Duration::ZERO;
    let step = settings.heartbeat_interval;
    for host in 0.. {
        if cluster.is_owned() {
            break;
        }
        cluster.join(&format!("host-{host}"));
        cluster.run(step);
        waited += step;
        assert!(waited < settings.cold_start_window * 2);
    }
    let window = settings.cold_start_window;
    assert!(waited >= window && waited < window + step * 4, "{waited:?}");
}

#[test]
fn a_crash_waits_for_nothing_although_others_join_in_the_same_tick() {
    let mut settings = fast();
    settings.planned_scale_window = Duration::from_secs(60);
    settings.rebalance_cooldown = Duration::from_secs(60);
    let mut cluster = Cluster::new(settings, 12);
    for host in ["a", "b", "c"] {
        cluster.join(host);
    }
    until(&mut cluster, Duration::from_secs(30), Cluster::is_owned);
    cluster.run(Duration::from_secs(2));
    let crashed = (cluster.leader().unwrap() + 1) % 3;
    cluster.kill(crashed);
    cluster.join("d");
    cluster.join("e");
    let waited = until(&mut cluster, Duration::from_secs(2), Cluster::is_owned);
    assert!(waited < Duration::from_millis(900), "{waited:?}");
    let leader = cluster.leader().unwrap();
    let states = &cluster.nodes[leader].states;
    assert!(
        states.contains(&State::Emergency),
        "{leader} {crashed} {states:?}"
    );
}

#[test]
fn the_crash_of_a_worker_without_partitions_is_over_at_once() {
    let mut cluster = Cluster::settled(fast(), 3, 2);
    let idle = cluster
        .counts()
        .iter()
        .position(|count| *count == 0)
        .unwrap();
    cluster.kill(idle);
    cluster.run(Duration::from_secs(3));
    let leader = cluster.leader().unwrap();
    assert_eq!(cluster.nodes[leader].member.state(), State::Stable);
}

#[test]
fn too_many_gone_at_once_are_a_restart_and_waited_for() {
    let mut settings = fast();
    settings.cold_start_window = Duration::from_secs(5);
    let mut cluster = Cluster::settled(settings, 4, 16);
    let leader = cluster.leader().unwrap();
    let before = cluster.owners();
    for node in (0..4).filter(|node| *node != leader).take(2) {
        cluster.kill(node);
    }
    cluster.run(Duration::from_secs(3));
    assert!(!cluster.is_owned(), "they are waited for");
    let life = cluster.nodes[leader].member.adopted().map(|(_, life)| life);
    assert_eq!(life, Some(Lifecycle::ColdStart));
    for node in (0..4).filter(|node| *node != leader).take(2) {
        cluster.join(&format!("host-{node}"));
    }
    let waited = until(&mut cluster, Duration::from_secs(2), Cluster::is_owned);
    assert!(
        waited < Duration::from_millis(500),
        "all are back: {waited:?}"
    );
    assert_eq!(cluster.owners(), before, "nothing moved");
}

#[test]
fn fewer_gone_than_the_ratio_says_are_crashes() {
    let mut settings = fast();
    settings.cold_start_window = Duration::from_secs(60);
    settings.restart_detection_ratio = 0.75;
    let mut cluster = Cluster::settled(settings, 4, 16);
    let leader = cluster.leader().unwrap();
    for node in (0..4).filter(|node| *node != leader).take(2) {
        cluster.kill(node);
    }
    until(&mut cluster, Duration::from_millis(1200), Cluster::is_owned);
}

#[test]
fn a_worker_that_is_back_within_the_grace_period_moves_nothing() {
    let mut settings = fast();
    settings.grace = Duration::from_secs(2);
    let mut cluster = Cluster::settled(settings, 3, 12);
    let before = cluster.owners();
    let crashed = (cluster.leader().unwrap() + 1) % 3;
    cluster.kill(crashed);
    cluster.run(Duration::from_millis(1500));
    cluster.join(&format!("host-{crashed}"));
    cluster.run(Duration::from_millis(300));
    assert!(cluster.is_owned());
    cluster.run(Duration::from_secs(3));
    assert_eq!(cluster.owners(), before);
    let leads = cluster.leader().unwrap();
    let others = |node: &usize| cluster.nodes[*node].is_up && *node != leads;
    let crashed = (0..4).find(others).unwrap();
    cluster.kill(crashed);
    let waited = until(&mut cluster, Duration::from_secs(4), Cluster::is_owned);
    assert!(waited > Duration::from_millis(2_500), "{waited:?}");
}

#[test]
fn a_worker_that_crashed_and_is_back_soon_gets_its_share_again() {
    let mut cluster = Cluster::settled(fast(), 3, 12);
    let crashed = (cluster.leader().unwrap() + 1) % 3;
    cluster.kill(crashed);
    until(&mut cluster, Duration::from_secs(2), Cluster::is_owned);
    cluster.join(&format!("host-{crashed}"));
    cluster.run(fast().planned_scale_window * 4 + fast().rebalance_cooldown * 2);
    assert_eq!(cluster.nodes[3].runs.len(), 4);
}

fn heavier(node: usize, cluster: &mut Cluster, weight: f64) {
    let description = SelfDescription {
        health: Health::Healthy,
        weight,
        zone: None,
    };
    cluster.tell(node, Event::Described(description));
}

#[test]
fn an_imbalance_below_the_threshold_moves_nothing() {
    let mut settings = fast();
    settings.min_rebalance_threshold = 0.3;
    for (weight, moves) in [(1.2, false), (2.0, true)] {
        let mut cluster = Cluster::settled(settings.clone(), 2, 40);
        let starts = cluster.history.len();
        heavier(0, &mut cluster, weight);
        cluster.run(Duration::from_secs(3));
        assert_eq!(cluster.history.len() > starts, moves, "weight {weight}");
    }
}

#[test]
fn a_new_worker_gets_its_share_whatever_the_threshold_is() {
    let mut settings = fast();
    settings.min_rebalance_threshold = 1e6;
    let mut cluster = Cluster::settled(settings, 3, 12);
    cluster.join("host-3");
    cluster.run(Duration::from_secs(3));
    assert_eq!(cluster.counts(), [3, 3, 3, 3]);
}

#[test]
fn after_a_planned_rebalance_the_next_waits_for_the_cooldown() {
    let mut settings = fast();
    settings.rebalance_cooldown = Duration::from_secs(20);
    let mut cluster = Cluster::settled(settings, 2, 12);
    cluster.join("host-2");
    let third = |cluster: &Cluster| cluster.counts().get(2) == Some(&4);
    until(&mut cluster, Duration::from_secs(30), third);
    cluster.join("host-3");
    let fourth = |cluster: &Cluster| cluster.counts().get(3) == Some(&3);
    let waited = until(&mut cluster, Duration::from_secs(30), fourth);
    assert!(waited > Duration::from_millis(19_500), "{waited:?}");
}

#[test]
fn the_partitions_of_a_crashed_worker_wait_for_no_cooldown() {
    let mut settings = fast();
    settings.rebalance_cooldown = Duration::from_secs(3600);
    let mut cluster = Cluster::new(settings, 12);
    for host in ["a", "b"] {
        cluster.join(host);
    }
    until(&mut cluster, Duration::from_secs(10), Cluster::is_owned);
    cluster.join("c");
    let third = |cluster: &Cluster| cluster.counts().get(2) == Some(&4);
    until(&mut cluster, Duration::from_secs(10), third);
    cluster.kill(2);
    until(&mut cluster, Duration::from_millis(900), Cluster::is_owned);
}

#[test]
fn the_log_tells_joins_crashes_returns_and_first_placements_apart() {
    let mut cluster = Cluster::settled(fast(), 2, 8);
    assert!(moves(&cluster).iter().all(|entry| entry.from.is_none()));
    cluster.join("host-2");
    cluster.run(Duration::from_secs(2));
    let joined = moves(&cluster).split_off(8);
    assert!(!joined.is_empty());
    let newcomer = cluster.nodes[2].member.worker_id().unwrap();
    assert!(
        joined
            .iter()
            .all(|entry| entry.to.as_deref() == Some(&*newcomer) && entry.from.is_some())
    );
    let within = Duration::from_secs(5);
    let known = moves(&cluster).len();
    cluster.stop(2, Shutdown::Return { within });
    cluster.run(Duration::from_millis(300));
    cluster.join("host-2");
    cluster.run(Duration::from_secs(1));
    let back = moves(&cluster).split_off(known);
    assert!(!back.is_empty());
    assert!(
        back.iter()
            .all(|entry| entry.cause == "its worker came back"),
        "{back:?}"
    );
}

/// Fails until it is told to work.
#[derive(Debug)]
struct Sulking;

impl Strategy for Sulking {
    fn name(&self) -> &str {
        "sulking"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        if workers.len() < 2 {
            let message = "one is not enough".into();
            let strategy = "sulking".into();
            return Err(Error::Strategy { strategy, message });
        }
        Balanced::new().assign(workers, partitions, previous)
    }
}

#[test]
fn a_cold_start_lasts_until_a_strategy_has_placed_something() {
    let mut cluster = Cluster::new(fast(), 4);
    cluster.strategy = Arc::new(Sulking);
    cluster.join("host-0");
    cluster.run(Duration::from_secs(6));
    let life = |cluster: &Cluster| cluster.nodes[0].member.adopted().map(|(_, life)| life);
    assert_eq!(life(&cluster), Some(Lifecycle::ColdStart));
    cluster.join("host-1");
    cluster.settle();
    assert_eq!(cluster.counts(), [2, 2]);
}

#[test]
fn the_default_strategy_runs_in_a_cluster_too() {
    let mut cluster = Cluster::new(fast(), 200);
    cluster.strategy = Arc::new(WeightedConsistentHash::new());
    for host in 0..4 {
        cluster.join(&format!("host-{host}"));
    }
    cluster.settle();
    let starts = cluster.history.len();
    cluster.kill((cluster.leader().unwrap() + 1) % 4);
    cluster.run(Duration::from_secs(3));
    assert!(cluster.is_owned());
    let moved = cluster.history.len() - starts;
    assert!(moved < 200 / 2, "{moved} of 200 moved");
}

#[test]
fn each_rebalance_logs_one_debug_line_and_an_unchanged_plan_logs_none() {
    let weighted = |n: u32| {
        let partition = Partition::shard("p", n).unwrap();
        // One is heavier than a worker's share, in every plan.
        let weight = if n == 0 { 1_000_000 } else { i64::from(n % 7) };
        partition.with_weight(weight).unwrap()
    };
    let mut cluster = Cluster::new(fast(), 0);
    cluster.partitions = Partitions::new((0..200).map(weighted)).unwrap();
    cluster.strategy = Arc::new(WeightedConsistentHash::new());
    let placed = debug_lines_of(|| {
        for host in 0..4 {
            cluster.join(&format!("host-{host}"));
        }
        cluster.settle();
    });
    assert_eq!(placed.len(), 1, "{placed:#?}");
    assert!(!placed[0].contains(" 0 "), "{placed:?}");
    let joined = debug_lines_of(|| {
        cluster.join("host-4");
        cluster.settle();
    });
    assert_eq!(joined.len(), 1, "{joined:#?}");
    let leader = cluster.leader().unwrap();
    let refreshed = debug_lines_of(|| {
        cluster.tell(leader, Event::RefreshRequested);
        cluster.run(Duration::from_secs(5));
    });
    assert!(refreshed.is_empty(), "{refreshed:#?}");
}

#[test]
fn an_empty_source_is_believed_when_it_says_so_again() {
    let mut cluster = Cluster::settled(fast(), 2, 8);
    let leader = cluster.leader().unwrap();
    cluster.nodes[leader].source = Ok(Partitions::new([]).unwrap());
    cluster.tell(leader, Event::RefreshRequested);
    cluster.run(fast().heartbeat_interval / 2);
    assert!(cluster.is_owned(), "once is not enough");
    cluster.run(Duration::from_secs(2));
    assert_eq!(cluster.counts(), [0, 0]);
}

#[test]
fn events_that_nobody_asked_for_change_nothing() {
    let mut cluster = Cluster::settled(fast(), 2, 8);
    let starts = cluster.history.len();
    for node in 0..2 {
        cluster.tell(node, Event::Start);
        cluster.tell(node, Event::Elected(true));
        cluster.tell(node, Event::Connected(cluster.incarnation.clone()));
        for entry in cluster.table.list(&divvy_core::store::Prefix::ALL) {
            cluster.tell(node, Event::Seen(Change::Put(entry)));
        }
        cluster.tell(node, Event::Missed);
    }
    cluster.run(Duration::from_secs(3));
    assert!(cluster.is_owned());
    assert_eq!(cluster.history.len(), starts);
}

/// One of four leaves, or crashes, and its partitions are kept for it. Half of
/// that time later whoever leads crashes too. Gives how long after its record
/// said so others own what it had.
fn kept_despite_another_leader(settings: LeaderSettings, leaves_for: Option<Duration>) -> Duration {
    let kept_for = leaves_for.unwrap_or(settings.grace);
    let mut cluster = Cluster::settled(settings, 4, 12);
    let leader = cluster.leader().unwrap();
    let gone = (leader + 1) % 4;
    let had = cluster.nodes[gone].runs.clone();
    let key = Key::new(["w", cluster.nodes[gone].member.worker_id().unwrap()]).unwrap();
    match leaves_for {
        Some(within) => cluster.stop(gone, Shutdown::Return { within }),
        None => cluster.kill(gone),
    }
    until(&mut cluster, Duration::from_secs(30), |cluster| {
        let record = cluster.table.get(&key).unwrap();
        WorkerRecord::decode(&record.value).unwrap().life != Life::Live
    });
    cluster.run(kept_for / 2);
    cluster.kill(leader);
    let rest = until(&mut cluster, Duration::from_secs(120), |cluster| {
        let owners = cluster.owners();
        had.keys().all(|partition| owners.contains_key(partition))
    });
    kept_for / 2 + rest
}

#[test]
fn a_standby_that_takes_over_does_not_count_the_time_to_come_back_again() {
    let kept_for = Duration::from_secs(30);
    let settings = LeaderSettings {
        grace: kept_for,
        // Two of four that are gone are no restart of everybody.
        restart_detection_ratio: 1.0,
        ..LeaderSettings::default()
    };
    let another = LeaderSettings::observed(settings.leader_lease) + Duration::from_secs(2);
    for leaves_for in [Some(kept_for), None] {
        let settings = LeaderSettings {
            grace: if leaves_for.is_some() {
                Duration::ZERO
            } else {
                kept_for
            },
            ..settings.clone()
        };
        let kept = kept_despite_another_leader(settings, leaves_for);
        assert!(kept >= kept_for, "{leaves_for:?}: only {kept:?}");
        assert!(kept <= kept_for + another, "{leaves_for:?}: {kept:?}");
    }
}
