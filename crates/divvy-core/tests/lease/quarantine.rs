//! A store that forgot leases: nobody gets one before the longest has expired.

use std::time::Duration;

use divvy_core::Moment;
use divvy_core::lease::{Event, LeaseSettings, Misalignment, Report};
use divvy_core::store::Incarnation;

use crate::cluster::{Cluster, ms, settings};

/// Settings with this lease, in seconds, and heartbeats of a second.
fn leasing(seconds: u64) -> LeaseSettings {
    LeaseSettings {
        lease_ttl: Duration::from_secs(seconds),
        heartbeat_interval: ms(1_000),
        renew_interval: ms(1_000),
        ..settings()
    }
}

fn start(cluster: &mut Cluster, name: &str, lease: u64) -> usize {
    cluster.start(Cluster::setup(name, &[("demo", 24)], leasing(lease)))
}

/// Two workers that share 24 partitions, with leases of these lengths.
fn two(leases: [u64; 2]) -> Cluster {
    let mut cluster = Cluster::new();
    start(&mut cluster, "a", leases[0]);
    start(&mut cluster, "b", leases[1]);
    cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    cluster.pass(ms(5_000));
    cluster
}

/// How long a worker said that nothing is granted.
fn announced(cluster: &Cluster, place: usize) -> Vec<Duration> {
    let reports = cluster.places[place].reports.iter();
    let announced = reports.filter_map(|report| match report {
        Report::Quarantined(left) => Some(*left),
        _ => None,
    });
    announced.collect()
}

#[test]
fn first_worker_of_an_empty_store_waits_its_lease_and_two_heartbeats() {
    let mut cluster = Cluster::new();
    cluster.restart_store("first", false);
    let place = start(&mut cluster, "a", 10);
    cluster.pass(ms(1_500));
    assert_eq!(announced(&cluster, place), [ms(12_000)]);
    let is_waiting = |found: &Misalignment| *found == Misalignment::Quarantine;
    let member = &cluster.places[place].member;
    assert!(member.misaligned().all(|found| is_waiting(&found.why)));
    let took = ms(1_500) + cluster.until(ms(13_000), |cluster| cluster.running() == 24);
    assert!(took >= ms(12_000) && took < ms(12_200), "{took:?}");
}

#[test]
fn later_workers_of_an_open_store_do_not_wait() {
    let mut cluster = two([10, 10]);
    let place = start(&mut cluster, "c", 90);
    cluster.pass(ms(500));
    assert_eq!(announced(&cluster, place), []);
    assert!(!cluster.places[place].member.is_over());
}

#[test]
fn a_store_that_kept_its_data_waits_for_the_longest_lease_of_its_workers() {
    let mut cluster = two([10, 90]);
    // Nothing is taken from those who hold it, and nothing stops.
    cluster.restart_store("second", true);
    cluster.reconnect("second");
    cluster.kill(1);
    cluster.pass(ms(100));
    assert_eq!(announced(&cluster, 0).len(), 1);
    let restarted = cluster.now;
    cluster.until(ms(100_000), |cluster| cluster.shares()[0] == 24);
    let took = cluster.now.since(restarted);
    assert!(took >= ms(89_900), "{took:?}");
    assert!(cluster.starts.values().all(|(count, _)| *count <= 2));
}

/// A worker with a long lease is cut off when the store forgets everything;
/// only one that had seen its lease length reaches the store.
#[test]
fn the_longest_lease_that_a_worker_ever_saw_outlives_the_store() {
    let mut cluster = two([3, 60]);
    cluster.places[1].is_cut_off = true;
    cluster.restart_store("second", false);
    cluster.reconnect("second");
    let forgotten = cluster.now;
    let had = cluster.shares()[1];
    assert!(had > 0);
    cluster.until(ms(61_000), |cluster| cluster.shares()[1] == 0);
    assert_eq!(cluster.shares()[0], 0, "nothing was taken before");
    cluster.until(ms(20_000), |cluster| cluster.shares()[0] == 24);
    assert!(cluster.now.since(forgotten) >= ms(60_000));
}

/// Nobody who knew of the long lease is left but its holder, which beats in
/// time.
#[test]
fn a_survivor_s_lease_makes_a_new_worker_wait_longer() {
    let mut cluster = two([60, 60]);
    cluster.kill(0);
    cluster.restart_store("second", false);
    let forgotten = cluster.now;
    let new = start(&mut cluster, "new", 3);
    cluster.pass(ms(1_500));
    assert_eq!(announced(&cluster, new)[0], ms(5_000), "it knows no better");
    cluster.until(ms(70_000), |cluster| cluster.shares()[new] > 0);
    assert!(cluster.now.since(forgotten) >= ms(60_000));
}

#[test]
fn a_second_loss_begins_the_wait_again() {
    let mut cluster = two([10, 10]);
    cluster.restart_store("second", false);
    cluster.pass(ms(8_000));
    cluster.restart_store("third", false);
    let forgotten = cluster.now;
    cluster.until(ms(20_000), |cluster| cluster.running() == 24);
    let took = cluster.now.since(forgotten);
    assert!(took >= ms(10_000) && took < ms(12_500), "{took:?}");
}

/// A worker that only ever saw a store that grants nothing knows no more than
/// at its start.
#[test]
fn a_worker_that_never_saw_a_lease_waits_two_heartbeats_longer_each_time() {
    let mut cluster = Cluster::new();
    cluster.restart_store("first", false);
    let place = start(&mut cluster, "a", 10);
    cluster.pass(ms(5_000));
    cluster.restart_store("second", false);
    let forgotten = cluster.now;
    cluster.until(ms(20_000), |cluster| cluster.running() == 24);
    let took = cluster.now.since(forgotten);
    assert!(took >= ms(12_000), "{took:?}");
    assert_eq!(announced(&cluster, place).len(), 1, "it was one long wait");
}

/// Announcements of lengths that no setting allows are no lengths.
#[test]
fn absurd_lease_lengths_of_others_are_ignored() {
    let mut cluster = two([10, 10]);
    let worker = divvy_core::store::WorkerId::new(crate::cluster::CLUSTER, "x").unwrap();
    let (time, session) = (cluster.time(), divvy_core::store::Nonce::new(7));
    let ttls = (Duration::from_secs(600), Duration::from_secs(600));
    cluster.table.open_session(time, &worker, session, ttls.1);
    let words = format!(r#"{{"weight": 0, "lease_ttl_ms": {}}}"#, u64::MAX);
    let beaten = cluster.table.beat(time, &worker, session, &words, ttls);
    assert_eq!(beaten, divvy_core::store::Tenure::Current);
    cluster.pass(ms(10_000));
    cluster.restart_store("second", false);
    cluster.until(ms(14_000), |cluster| cluster.running() == 24);
}

#[test]
fn wait_counts_on_while_the_store_is_out_of_reach() {
    let mut cluster = Cluster::new();
    cluster.restart_store("first", false);
    start(&mut cluster, "a", 10);
    cluster.pass(ms(2_000));
    cluster.is_down = true;
    cluster.pass(ms(20_000));
    cluster.is_down = false;
    let life = Incarnation::new("first");
    cluster.hand(0, Event::Connected(life));
    cluster.until(ms(3_000), |cluster| cluster.running() == 24);
    assert!(cluster.now > Moment::from_origin(Duration::from_secs(1_020)));
}
