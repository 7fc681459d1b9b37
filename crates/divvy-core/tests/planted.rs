//! Tests the tests: strategies that are broken on purpose, each of which the
//! suite must catch.

mod suite;

use std::sync::atomic::{AtomicU32, Ordering};

use divvy_core::{
    Assignment, Error, Health, Partitions, Rendezvous, RoundRobin, Strategy, Worker, Workers, hash,
};

/// A strategy made of a function that picks an owner for each partition.
struct Planted<F>(F);

impl<F> std::fmt::Debug for Planted<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Planted")
    }
}

impl<F> Strategy for Planted<F>
where
    F: Fn(&Workers, &str) -> usize + Send + Sync,
{
    fn name(&self) -> &str {
        "planted"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        workers.eligible()?;
        let owners = partitions
            .iter()
            .map(|p| (self.0)(workers, p.as_str()) as u32);
        Assignment::new(workers, partitions, owners.collect())
    }
}

fn workers() -> Workers {
    let sick = Worker::new("sick").unwrap().with_health(Health::Unhealthy);
    let idle = Worker::new("idle").unwrap().with_weight(0.0).unwrap();
    let fit = (0..5).map(|n| Worker::new(format!("w{n}")).unwrap());
    Workers::new(fit.chain([sick, idle])).unwrap()
}

fn healthy() -> Workers {
    Workers::numbered("w", 5).unwrap()
}

fn partitions() -> Partitions {
    Partitions::shards([("default", 200)]).unwrap()
}

fn key(partition: &str) -> usize {
    hash::bytes64(partition.as_bytes(), 0) as usize
}

#[test]
fn the_real_ones_pass() {
    let strategy = Rendezvous::new();
    let new = Worker::new("new").unwrap();
    suite::total(&strategy, &workers(), &partitions()).unwrap();
    suite::only_eligible(&strategy, &workers(), &partitions()).unwrap();
    suite::deterministic(&strategy, &workers(), &partitions()).unwrap();
    suite::order_independent(&strategy, &workers(), &partitions(), 1).unwrap();
    suite::no_workers_is_an_error(&strategy, &partitions()).unwrap();
    suite::departed_worker_moves_only_its_own(&strategy, &workers(), &partitions()).unwrap();
    suite::new_worker_only_gains(&strategy, &workers(), &partitions(), &new).unwrap();
    suite::explanation_agrees(&strategy, &workers(), &partitions()).unwrap();
}

#[test]
fn partitions_given_to_unfit_workers_are_caught() {
    let careless = Planted(|workers: &Workers, p: &str| key(p) % workers.len());
    assert!(suite::only_eligible(&careless, &workers(), &partitions()).is_err());
}

#[test]
fn state_between_calls_is_caught() {
    let calls = AtomicU32::new(0);
    let stateful = Planted(move |workers: &Workers, _: &str| {
        calls.fetch_add(1, Ordering::Relaxed) as usize % workers.len()
    });
    // 201 partitions on 5 workers: each call starts where the last one ended.
    let partitions = Partitions::shards([("default", 201)]).unwrap();
    assert!(suite::deterministic(&stateful, &healthy(), &partitions).is_err());
    assert!(suite::order_independent(&stateful, &healthy(), &partitions, 1).is_err());
}

#[test]
fn modulo_placement_is_caught_on_join_and_on_leave() {
    let modulo = Planted(|workers: &Workers, p: &str| key(p) % workers.len());
    let new = Worker::new("w9").unwrap();
    assert!(suite::departed_worker_moves_only_its_own(&modulo, &healthy(), &partitions()).is_err());
    assert!(suite::new_worker_only_gains(&modulo, &healthy(), &partitions(), &new).is_err());
    assert!(
        suite::departed_worker_moves_only_its_own(&RoundRobin, &healthy(), &partitions()).is_err()
    );
}

#[test]
fn a_hash_over_indices_instead_of_names_is_caught() {
    // Rendezvous over positions in the list: right until somebody leaves.
    let positional = Planted(|workers: &Workers, p: &str| {
        (0..workers.len())
            .max_by_key(|index| hash::bytes64(p.as_bytes(), *index as u64))
            .unwrap()
    });
    suite::deterministic(&positional, &healthy(), &partitions()).unwrap();
    assert!(
        suite::departed_worker_moves_only_its_own(&positional, &healthy(), &partitions()).is_err()
    );
}

#[test]
fn an_explanation_of_another_placement_is_caught() {
    /// Explains by another seed than it places by.
    #[derive(Debug)]
    struct Liar;

    impl Strategy for Liar {
        fn name(&self) -> &str {
            "liar"
        }

        fn assign(
            &self,
            workers: &Workers,
            partitions: &Partitions,
            previous: Option<&Assignment>,
        ) -> Result<Assignment, Error> {
            RoundRobin.assign(workers, partitions, previous)
        }

        fn explain(
            &self,
            partition: &str,
            workers: &Workers,
            partitions: &Partitions,
            previous: Option<&Assignment>,
        ) -> Result<divvy_core::Explanation, Error> {
            Rendezvous::new().explain(partition, workers, partitions, previous)
        }
    }

    assert!(suite::explanation_agrees(&Liar, &healthy(), &partitions()).is_err());
}

#[test]
fn silence_about_missing_workers_is_caught() {
    /// Takes nobody to place nothing on as done.
    #[derive(Debug)]
    struct Lenient;

    impl Strategy for Lenient {
        fn name(&self) -> &str {
            "lenient"
        }

        fn assign(
            &self,
            workers: &Workers,
            partitions: &Partitions,
            previous: Option<&Assignment>,
        ) -> Result<Assignment, Error> {
            if partitions.is_empty() {
                return Assignment::new(workers, partitions, Vec::new());
            }
            Rendezvous::new().assign(workers, partitions, previous)
        }
    }

    assert!(suite::no_workers_is_an_error(&Lenient, &partitions()).is_err());
}
