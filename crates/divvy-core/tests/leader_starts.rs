//! Leader mode: what becomes of a partition whose start hook fails or does not
//! end.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use std::time::Duration;

use cluster::Cluster;
use divvy_core::leader::{LeaderSettings, Overdue, UNABLE_MAX};

fn fast() -> LeaderSettings {
    LeaderSettings::fast()
}

/// Two workers, of whom the second joins and then cannot start what `breaks`
/// says; and what it was given first.
fn lame(
    settings: LeaderSettings,
    partitions: u32,
    breaks: impl Fn(&mut Cluster, usize),
) -> (Cluster, usize) {
    let mut cluster = Cluster::settled(settings, 1, partitions);
    let node = cluster.join("lame");
    breaks(&mut cluster, node);
    (cluster, node)
}

fn all(cluster: &Cluster) -> Vec<String> {
    cluster.partitions.iter().map(ToString::to_string).collect()
}

fn fail_all(cluster: &mut Cluster, node: usize) {
    let all = all(cluster);
    cluster.nodes[node].failing.extend(all);
}

/// When each start of this partition at this node was called, since the first.
fn starts_of(cluster: &mut Cluster, node: usize, name: &str, lasts: Duration) -> Vec<Duration> {
    let step = Duration::from_millis(5);
    let count = |cluster: &Cluster| {
        let starts = cluster.history.iter();
        starts.filter(|(n, _, at)| n == name && *at == node).count()
    };
    let (mut seen, mut at) = (count(cluster), Vec::new());
    let end = cluster.now + lasts;
    while cluster.now < end {
        cluster.run(step);
        let now = count(cluster);
        at.extend((seen..now).map(|_| cluster.now));
        seen = now;
    }
    at
}

#[test]
fn a_start_that_always_fails_is_handed_on_after_so_many_attempts() {
    let (mut cluster, lame) = lame(fast(), 4, fail_all);
    cluster.run(Duration::from_secs(2));
    assert!(cluster.is_owned(), "{:?}", cluster.counts());
    assert_eq!(cluster.counts()[lame], 0);
    let mut tried: Vec<_> = cluster
        .history
        .iter()
        .filter(|(.., at)| *at == lame)
        .collect();
    tried.sort();
    let names: std::collections::BTreeSet<_> = tried.iter().map(|(name, ..)| name).collect();
    assert_eq!(names.len(), 2, "its share was two");
    assert_eq!(tried.len(), 2 * fast().start_attempts as usize);
    let told = &cluster.nodes[lame].problems;
    assert!(
        told.iter().any(|text| text.contains("does not start here")),
        "{told:?}"
    );
}

#[test]
fn what_could_not_be_started_comes_back_later_each_time() {
    let mut settings = fast();
    settings.start_backoff_max = Duration::from_secs(60);
    let (mut cluster, lame) = lame(settings, 2, fail_all);
    let name = {
        cluster.run(Duration::from_secs(3));
        let mut tried = cluster.history.iter().filter(|(.., at)| *at == lame);
        tried.next().expect("it got a share").0.clone()
    };
    let mut other = all(&cluster);
    other.retain(|partition| *partition != name);
    let at = starts_of(&mut cluster, lame, &name, Duration::from_secs(120));
    // Attempts of one grant follow each other within a second.
    let mut rounds = vec![at[0]];
    rounds.extend(
        at.windows(2)
            .filter(|w| w[1] - w[0] > Duration::from_secs(1))
            .map(|w| w[1]),
    );
    let gaps: Vec<Duration> = rounds.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.len() >= 2, "{gaps:?}");
    assert!(
        gaps.windows(2).all(|pair| pair[1] > pair[0].mul_f64(1.5)),
        "{gaps:?}"
    );
    assert!(cluster.is_owned());
    cluster.nodes[lame].failing.clear();
    cluster.run(Duration::from_secs(70));
    assert_eq!(
        cluster.counts(),
        [1, 1],
        "a worker that is well gets its share"
    );
}

#[test]
fn a_start_that_does_not_end_is_ended_stopped_and_handed_on() {
    for overdue in [Overdue::Abort, Overdue::Report] {
        let mut settings = fast();
        settings.overdue = overdue;
        let (mut cluster, lame) = lame(settings, 4, |cluster, node| {
            let all = all(cluster);
            cluster.nodes[node].stuck.extend(all);
        });
        // Its window, two deadlines, and the way to the other.
        cluster.run(fast().start_deadline * 2 + Duration::from_secs(2));
        assert!(cluster.is_owned(), "{:?}", cluster.counts());
        assert_eq!(cluster.counts()[lame], 0);
        assert_eq!(cluster.nodes[lame].aborted, None);
        assert!(cluster.nodes[lame].is_up);
    }
}

#[test]
fn a_start_that_cannot_even_be_ended_ends_the_process_after_three_deadlines() {
    let (mut cluster, lame) = lame(fast(), 4, |cluster, node| {
        let all = all(cluster);
        cluster.nodes[node].stuck.extend(all);
        cluster.nodes[node].yields = false;
    });
    cluster.run(fast().start_deadline * 5 / 2);
    assert_eq!(cluster.nodes[lame].aborted, None);
    cluster.run(fast().start_deadline * 2);
    assert!(cluster.nodes[lame].aborted.is_some());
    cluster.run(fast().heartbeat_ttl * 2);
    assert!(cluster.is_owned(), "{:?}", cluster.counts());
}

#[test]
fn what_nobody_else_could_take_stays_and_is_tried_again_more_and_more_rarely() {
    let mut cluster = Cluster::settled(fast(), 1, 1);
    let name = all(&cluster).remove(0);
    cluster.kill(0);
    let node = cluster.join("alone");
    fail_all(&mut cluster, node);
    let at = starts_of(&mut cluster, node, &name, Duration::from_secs(20));
    let gaps: Vec<Duration> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.len() >= 4, "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] > pair[0]), "{gaps:?}");
    let tokens: std::collections::BTreeSet<i64> = cluster
        .history
        .iter()
        .filter(|(.., at)| *at == node)
        .map(|(_, token, _)| *token)
        .collect();
    assert_eq!(tokens.len(), 1, "it was granted once");
    cluster.nodes[node].failing.clear();
    cluster.run(fast().start_backoff_max);
    assert!(cluster.is_owned());
}

#[test]
fn a_worker_that_can_start_nothing_at_all_ends_up_with_nothing() {
    let partitions = UNABLE_MAX as u32 * 3;
    let (mut cluster, lame) = lame(fast(), partitions, fail_all);
    cluster.run(Duration::from_secs(10));
    assert!(cluster.is_owned(), "{:?}", cluster.counts());
    assert_eq!(cluster.counts()[lame], 0);
}

#[test]
fn a_pin_to_a_worker_that_cannot_start_it_waits() {
    let mut cluster = Cluster::settled(fast(), 2, 4);
    let name = cluster.nodes[0]
        .runs
        .keys()
        .next()
        .expect("its share")
        .clone();
    cluster.nodes[1].failing.insert(name.clone());
    let id = cluster.nodes[1]
        .member
        .worker_id()
        .expect("it runs")
        .to_owned();
    let mut control = divvy_core::Control::default();
    control.pinned.insert(name.clone(), id);
    let key = divvy_core::store::Key::new(["ctl"]).expect("a key");
    cluster.write(&key, &control.encode());
    cluster.run(Duration::from_millis(1500));
    assert!(cluster.nodes[0].runs.contains_key(&name));
    assert!(cluster.is_owned());
    let tried = |cluster: &Cluster| {
        let starts = cluster.history.iter();
        starts.filter(|(n, _, at)| *n == name && *at == 1).count()
    };
    assert_eq!(tried(&cluster), 3);
    cluster.nodes[1].failing.clear();
    cluster.run(fast().start_backoff_max);
    assert!(
        cluster.nodes[1].runs.contains_key(&name),
        "the pin is kept in mind"
    );
}
