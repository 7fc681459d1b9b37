//! Leader mode: what the store does not do is tried again, less and less often.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod cluster;

use std::time::Duration;

use cluster::Cluster;
use divvy_core::leader::{LeaderSettings, Retries};

const LONG: Duration = Duration::from_secs(240);

fn tries(cluster: &mut Cluster, prefix: &str) -> (usize, Duration) {
    cluster.refuses = Some(prefix.to_owned());
    cluster.refused.clear();
    cluster.run(LONG);
    let at = std::mem::take(&mut cluster.refused);
    let gaps = at.windows(2).map(|pair| pair[1] - pair[0]);
    (at.len(), gaps.max().unwrap_or_default())
}

fn told(cluster: &Cluster, node: usize, text: &str) -> usize {
    let problems = cluster.nodes[node].problems.iter();
    problems.filter(|told| told.contains(text)).count()
}

#[test]
fn claims_that_fail_wait_longer_each_time_up_to_a_lease_and_are_told_once() {
    let settings = LeaderSettings::default();
    let mut cluster = Cluster::new(settings.clone(), 4);
    let node = cluster.join("host-0");
    let (count, longest) = tries(&mut cluster, "w.");
    // Half of a lease each, once delays have grown; a little more at first.
    assert!((50..120).contains(&count), "{count}");
    assert!(longest > settings.heartbeat_ttl / 2, "{longest:?}");
    assert!(longest < settings.heartbeat_ttl * 2, "{longest:?}");
    let text = "claiming an id failed 4 times in a row, trying on";
    assert_eq!(told(&cluster, node, text), 1);
    cluster.refuses = None;
    cluster.settle();
}

#[test]
fn publications_that_fail_wait_longer_each_time_up_to_a_lease_and_are_told_once() {
    let settings = LeaderSettings::default();
    let mut cluster = Cluster::settled(settings.clone(), 2, 4);
    cluster.join("host-2");
    let (count, longest) = tries(&mut cluster, "root");
    assert!((40..120).contains(&count), "{count}");
    assert!(longest < settings.heartbeat_ttl * 2, "{longest:?}");
    let leader = cluster.leader().expect("it still leads");
    let text = "publishing an assignment failed 4 times in a row, trying on";
    assert_eq!(told(&cluster, leader, text), 1);
    cluster.refuses = None;
    cluster.settle();
}

#[test]
fn ceilings_grow_to_their_bound() {
    let retries = Retries::default();
    let ceilings: Vec<u64> = (0..7).map(|n| retries.ceiling(n).as_secs()).collect();
    assert_eq!(ceilings, [1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(retries.ceiling(u32::MAX), retries.longest);
}
