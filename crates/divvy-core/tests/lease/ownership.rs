//! Who gets what, and how soon.

use std::time::Duration;

use divvy_core::lease::{Event, LeaseSettings, SelfDescription};
use divvy_core::store::{Acquired, Claim, Nonce, WorkerId};
use divvy_core::{Partitions, Rendezvous, Scheme, Strategy, Worker, Workers};

use crate::cluster::{Cluster, key, ms, settings};

fn three(units: u32) -> Cluster {
    let mut cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.start(Cluster::setup(name, &[("demo", units)], settings()));
    }
    cluster
}

#[test]
fn a_cold_start_of_three_workers_owns_everything_within_two_seconds() {
    let mut cluster = three(24);
    let took = cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    assert!(took < ms(2_000), "{took:?}");
    assert!(cluster.is_settled(), "each has its own from the start");
}

#[test]
fn one_worker_takes_two_thousand_partitions_within_two_seconds() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("demo", 2_048)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 2_048);
}

#[test]
fn owners_are_those_of_the_rendezgo_scheme() {
    let mut cluster = three(200);
    cluster.until(ms(2_000), |cluster| cluster.running() == 200);
    let workers = Workers::new(["a", "b", "c"].map(|id| Worker::new(id).unwrap())).unwrap();
    let partitions = Partitions::shards([("demo", 200)]).unwrap();
    let scheme = Scheme::Rendezgo {
        cluster: crate::cluster::CLUSTER.to_owned(),
    };
    let strategy = Rendezvous::new().with_scheme(scheme);
    let expected = strategy.assign(&workers, &partitions, None).unwrap();
    for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
        for lease in cluster.places[place].running.keys() {
            let owner = expected.owner_of(&lease.to_string());
            assert_eq!(owner.map(Worker::id), Some(name));
        }
    }
}

#[test]
fn partitions_of_a_killed_worker_run_elsewhere_within_its_lease_and_a_second() {
    let mut cluster = three(60);
    cluster.until(ms(2_000), |cluster| cluster.running() == 60);
    for (victim, after) in [(0, 7_300), (1, 2_111)] {
        cluster.pass(ms(after));
        cluster.kill(victim);
        let took = cluster.until(ms(11_000), |cluster| cluster.running() == 60);
        assert!(took <= ms(11_000), "{took:?}");
    }
}

#[test]
fn partitions_of_several_workers_killed_at_once_run_elsewhere_within_a_lease_and_a_reconcile() {
    let settings = LeaseSettings::default();
    let reconcile = settings
        .reconcile_interval
        .mul_f64(1.0 + settings.reconcile_jitter);
    let most = settings.lease_ttl + reconcile + ms(500);
    for round in 0..20 {
        let mut cluster = Cluster::new();
        for place in 0..8 {
            let name = format!("w{round}-{place}");
            cluster.start(Cluster::setup(&name, &[("demo", 200)], settings.clone()));
            cluster.pass(ms(137));
        }
        cluster.until(ms(240_000), |cluster| cluster.running() == 200);
        // At another time between two reconciles in each round.
        cluster.pass(ms(60_000 + round * 173));
        for victim in 0..4 {
            cluster.kill(victim);
        }
        cluster.until(most, |cluster| cluster.running() == 200);
    }
}

#[test]
fn partitions_of_a_worker_that_stops_run_elsewhere_within_two_seconds() {
    let mut cluster = three(60);
    cluster.until(ms(2_000), |cluster| cluster.running() == 60);
    cluster.pass(ms(4_000));
    cluster.hand(0, Event::Stop);
    let took = cluster.until(ms(2_000), |cluster| {
        cluster.running() == 60 && cluster.places[0].ended.is_some()
    });
    assert!(took < ms(200), "{took:?}");
    assert!(cluster.is_settled());
}

#[test]
fn nothing_moves_while_nothing_changes() {
    let mut cluster = three(60);
    cluster.until(ms(2_000), |cluster| cluster.running() == 60);
    cluster.pass(Duration::from_secs(600));
    assert!(cluster.starts.values().all(|(count, _)| *count == 1));
}

#[test]
fn workers_with_other_groups_on_one_store_leave_nothing_unowned() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("one", 16)], settings()));
    cluster.start(Cluster::setup("b", &[("two", 16)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 32);
    assert_eq!(cluster.shares(), [16, 16]);
}

#[test]
fn a_holder_of_another_cluster_is_told_of_once_for_each_group() {
    let mut cluster = Cluster::new();
    let stranger = WorkerId::new("other", "x").unwrap();
    for (group, number) in [("one", 0), ("one", 1), ("two", 0)] {
        let claim = Claim {
            key: key(group, number),
            nonce: Nonce::new(7),
        };
        let time = cluster.time();
        let hour = Duration::from_secs(3_600);
        let taken = cluster.table.acquire(time, &stranger, &claim, hour);
        assert!(matches!(taken, Acquired::Granted(_)), "{taken:?}");
    }
    cluster.start(Cluster::setup("a", &[("one", 4), ("two", 4)], settings()));
    cluster.start(Cluster::setup("b", &[("one", 4), ("two", 4)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 5);
    cluster.pass(Duration::from_secs(60));
    for place in [0, 1] {
        let problems = cluster.problems(place);
        let told = |group: &str| {
            let words = format!("units of workload '{group}' are held by \"other:x\"");
            problems.iter().filter(|it| it.contains(&words)).count()
        };
        assert_eq!((told("one"), told("two")), (1, 1), "{problems:?}");
        assert_eq!(problems.len(), 2, "its own cluster's are not: {problems:?}");
    }
}

#[test]
fn weights_of_workers_decide_and_travel_with_heartbeats() {
    let mut cluster = Cluster::new();
    for (name, weight) in [("a", 1.0), ("b", 3.0)] {
        let mut setup = Cluster::setup(name, &[("demo", 400)], settings());
        setup.description.weight = weight;
        cluster.start(setup);
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 400);
    let shares = cluster.shares();
    assert!((250..350).contains(&shares[1]), "{shares:?}");
    assert!(cluster.is_settled(), "both know both weights");
}

#[test]
fn an_unhealthy_worker_hands_on_everything_at_once_and_gets_it_back_in_time() {
    let mut cluster = three(60);
    cluster.until(ms(2_000), |cluster| cluster.running() == 60);
    let sick = SelfDescription {
        healthy: false,
        weight: 1.0,
    };
    cluster.hand(1, Event::Described(sick));
    let took = cluster.until(ms(2_000), |cluster| {
        cluster.shares()[1] == 0 && cluster.running() == 60
    });
    assert!(took < ms(500), "{took:?}");
    let well = SelfDescription {
        healthy: true,
        weight: 1.0,
    };
    cluster.hand(1, Event::Described(well));
    cluster.until(Duration::from_secs(180), |cluster| {
        cluster.shares()[1] > 10 && cluster.is_settled()
    });
}

#[test]
fn when_all_are_unhealthy_everything_stays() {
    let mut cluster = three(30);
    cluster.until(ms(2_000), |cluster| cluster.running() == 30);
    for place in 0..3 {
        let sick = SelfDescription {
            healthy: false,
            weight: 1.0,
        };
        cluster.hand(place, Event::Described(sick));
    }
    cluster.pass(ms(20_000));
    assert_eq!(cluster.running(), 30);
}

#[test]
fn what_one_worker_cannot_start_the_next_one_runs() {
    let mut cluster = three(30);
    for number in 0..30 {
        cluster.places[2].fails.insert(key("demo", number));
    }
    cluster.until(ms(12_000), |cluster| cluster.running() == 30);
    assert_eq!(cluster.shares()[2], 0);
    let starts: u32 = cluster.starts.values().map(|(count, _)| count).sum();
    cluster.pass(Duration::from_secs(600));
    let again: u32 = cluster.starts.values().map(|(count, _)| count).sum();
    let cannot = cluster.places[2].reports.len();
    assert!(
        again - starts < 120,
        "given up in vain ever more seldom: {}",
        again - starts
    );
    assert!(cannot < 600, "{cannot}");
    assert!(cluster.running() >= 28, "{:?}", cluster.shares());
}
