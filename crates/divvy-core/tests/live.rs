//! Incremental rendezvous against the full run.

use std::collections::BTreeMap;

use divvy_core::{Error, Health, Partitions, Rendezvous, Scheme, Strategy, Worker, Workers};

/// Verifies that after each of thousands of random joins and leaves, with
/// weights, unhealthy workers and times without anybody, the live placement is
/// what a full run computes from scratch.
fn follow(scheme: Scheme, events: usize, seed: u64) {
    let strategy = Rendezvous::new().with_scheme(scheme);
    let partitions = Partitions::shards([("default", 40)]).unwrap();
    let mut live = strategy
        .live(&Workers::new([]).unwrap(), &partitions)
        .unwrap();
    let mut present: BTreeMap<String, Worker> = BTreeMap::new();
    let mut rng = fastrand::Rng::with_seed(seed);
    for event in 0..events {
        let id = format!("w{}", rng.u32(0..14));
        let before = live.assignment().ok();
        let changed = if present.remove(&id).is_some() {
            live.leave(&id).unwrap()
        } else {
            let health = if rng.u8(0..8) == 0 {
                Health::Unhealthy
            } else {
                Health::Healthy
            };
            let weight = if rng.bool() {
                1.0
            } else {
                f64::from(rng.u8(0..4))
            };
            let worker = Worker::new(id.as_str())
                .unwrap()
                .with_weight(weight)
                .unwrap();
            let worker = worker.with_health(health);
            present.insert(id.clone(), worker.clone());
            live.join(worker).unwrap()
        };
        let workers = Workers::new(present.values().cloned()).unwrap();
        match strategy.assign(&workers, &partitions, None) {
            Ok(full) => {
                let now = live.assignment().unwrap();
                assert_eq!(now, full, "after event {event}");
                if let Some(before) = before {
                    assert_eq!(now.moves_from(&before).moved(), changed, "event {event}");
                }
            }
            Err(Error::NoWorkers { .. }) => {
                assert!(matches!(live.assignment(), Err(Error::NoWorkers { .. })));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn native_incremental_equals_full_over_thousands_of_joins_and_leaves() {
    follow(Scheme::Native { seed: 0 }, 6000, 1);
    follow(Scheme::Native { seed: 7 }, 2000, 2);
}

#[test]
fn cruster_incremental_equals_full() {
    follow(Scheme::Cruster, 1500, 3);
}

#[test]
fn rendezgo_incremental_equals_full() {
    let cluster = "demo".to_owned();
    follow(Scheme::Rendezgo { cluster }, 1500, 4);
}

#[test]
fn refused_joins_and_leaves_change_nothing() {
    let partitions = Partitions::shards([("default", 20)]).unwrap();
    let cruster = Rendezvous::new().with_scheme(Scheme::Cruster);
    let mut live = cruster
        .live(&Workers::of(["a", "b"]).unwrap(), &partitions)
        .unwrap();
    let before = live.assignment().unwrap();
    assert!(live.join(Worker::new("a").unwrap()).is_err());
    assert!(live.leave("c").is_err());
    let fractional = Worker::new("c").unwrap().with_weight(1.5).unwrap();
    assert!(live.join(fractional).is_err());
    assert_eq!(live.assignment().unwrap(), before);

    // A refused worker must not use up the place of one that left either.
    live.leave("a").unwrap();
    let fractional = Worker::new("c").unwrap().with_weight(1.5).unwrap();
    assert!(live.join(fractional).is_err());
    live.join(Worker::new("a").unwrap()).unwrap();
    assert_eq!(live.assignment().unwrap(), before);
}
