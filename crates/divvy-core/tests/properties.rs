//! Properties of the strategies over random workers and partitions.

mod suite;

use divvy_core::{
    Balanced, ConsistentHash, FilteredRendezvous, Health, Partition, Partitions, Rendezvous,
    RoundRobin, Scheme, Strategy, WeightedConsistentHash, Worker, Workers, Zoned,
};
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

fn strategies() -> Vec<Box<dyn Strategy>> {
    let mut all = hashing_strategies();
    all.push(Box::new(RoundRobin));
    all.push(Box::new(Balanced::new()));
    all.push(Box::new(WeightedConsistentHash::new()));
    all.push(Box::new(
        WeightedConsistentHash::new().with_fast_path(false),
    ));
    all.push(Box::new(Zoned::new()));
    all
}

/// Those that promise that only what must moves.
fn hashing_strategies() -> Vec<Box<dyn Strategy>> {
    let rendezgo = Scheme::Rendezgo {
        cluster: "demo".to_owned(),
    };
    vec![
        Box::new(Rendezvous::new()),
        Box::new(Rendezvous::new().with_scheme(Scheme::Native { seed: 99 })),
        Box::new(FilteredRendezvous::new()),
        Box::new(Rendezvous::new().with_scheme(Scheme::Cruster)),
        Box::new(Rendezvous::new().with_scheme(rendezgo)),
        #[cfg(feature = "parallel")]
        Box::new(Rendezvous::parallel()),
        Box::new(ConsistentHash::new()),
        Box::new(ConsistentHash::new().with_virtual_nodes(1).with_seed(3)),
    ]
}

fn worker(id: String, weight: u32, healthy: bool) -> Worker {
    let health = if healthy {
        Health::Healthy
    } else {
        Health::Unhealthy
    };
    let worker = Worker::new(id)
        .unwrap()
        .with_weight(f64::from(weight))
        .unwrap();
    worker.with_health(health)
}

/// Up to 12 workers, at least one of them fit; whole weights, which every
/// scheme takes.
fn some_workers() -> impl Generator<Value = Workers> {
    let others = btree_map(
        "[a-f]{1,3}(:[0-9]{1,4})?",
        (0u32..4, prop::bool::weighted(0.9)),
        0..12,
    );
    (others, 1u32..4).prop_map(|(others, weight)| {
        let fit = worker("fit".to_owned(), weight, true);
        let others = others
            .into_iter()
            .map(|(id, (weight, healthy))| worker(id, weight, healthy));
        Workers::new(others.chain([fit])).unwrap()
    })
}

/// Up to 60 partitions of the form `group:number`, which every scheme takes.
fn some_partitions() -> impl Generator<Value = Partitions> {
    btree_map(("[a-z]{1,4}", 0u32..50), 0i64..100, 0..60).prop_map(|entries| {
        let partition = |((group, number), weight): ((String, u32), i64)| {
            Partition::shard(&group, number)
                .unwrap()
                .with_weight(weight)
                .unwrap()
        };
        Partitions::new(entries.into_iter().map(partition)).unwrap()
    })
}

fn hold(verdict: suite::Verdict) -> Result<(), TestCaseError> {
    verdict.map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_strategy_is_total_deterministic_and_blind_to_order(
        workers in some_workers(), partitions in some_partitions(), seed: u64,
    ) {
        for strategy in strategies() {
            hold(suite::total(&*strategy, &workers, &partitions))?;
            hold(suite::only_eligible(&*strategy, &workers, &partitions))?;
            hold(suite::deterministic(&*strategy, &workers, &partitions))?;
            hold(suite::order_independent(&*strategy, &workers, &partitions, seed))?;
            hold(suite::no_workers_is_an_error(&*strategy, &partitions))?;
        }
    }

    #[test]
    fn departed_worker_moves_only_its_own_partitions(
        workers in some_workers(), partitions in some_partitions(),
    ) {
        for strategy in hashing_strategies() {
            hold(suite::departed_worker_moves_only_its_own(&*strategy, &workers, &partitions))?;
        }
    }

    #[test]
    fn new_worker_only_gains(
        workers in some_workers(), partitions in some_partitions(), weight in 1u32..5,
    ) {
        let new = worker("new".to_owned(), weight, true);
        for strategy in hashing_strategies() {
            hold(suite::new_worker_only_gains(&*strategy, &workers, &partitions, &new))?;
        }
    }

    #[test]
    fn explanations_agree_with_assignments(
        workers in some_workers(), partitions in some_partitions(),
    ) {
        for strategy in strategies() {
            hold(suite::explanation_agrees(&*strategy, &workers, &partitions))?;
        }
    }

    #[test]
    fn round_robin_counts_differ_by_at_most_one(
        workers in some_workers(), partitions in some_partitions(),
    ) {
        let assignment = RoundRobin.assign(&workers, &partitions, None).unwrap();
        let eligible = workers.eligible().unwrap();
        let counts = assignment.counts();
        let counts = || eligible.iter().map(|&index| counts[index as usize]);
        prop_assert!(counts().max().unwrap() - counts().min().unwrap() <= 1);
    }

    #[test]
    fn a_lighter_worker_only_loses_and_a_heavier_one_only_gains(
        workers in some_workers(), partitions in some_partitions(), less in 1u32..3,
    ) {
        // The weight of `fit` changes; whatever moves must come from it or go to it.
        let set = |weight: u32| {
            let rest = workers.iter().filter(|worker| worker.id() != "fit").cloned();
            Workers::new(rest.chain([worker("fit".to_owned(), weight, true)])).unwrap()
        };
        for strategy in hashing_strategies() {
            let light = strategy.assign(&set(less), &partitions, None).unwrap();
            let heavy = strategy.assign(&set(less + 1), &partitions, None).unwrap();
            for change in &heavy.moves_from(&light) {
                prop_assert_eq!(change.to.as_deref(), Some("fit"));
            }
        }
    }
}

#[cfg(feature = "parallel")]
#[test]
fn parallel_equals_sequential() {
    let partitions = Partitions::shards([("a", 3000), ("b", 500)]).unwrap();
    let schemes = [
        Scheme::Native { seed: 0 },
        Scheme::Native { seed: 5 },
        Scheme::Cruster,
        Scheme::Rendezgo {
            cluster: "c".to_owned(),
        },
    ];
    for scheme in schemes {
        for weight in [1, 2] {
            let workers = (0..40).map(|n| worker(format!("w{n}"), 1 + n % weight, n % 7 != 0));
            let workers = Workers::new(workers).unwrap();
            let one = Rendezvous::new().with_scheme(scheme.clone());
            let many = Rendezvous::parallel().with_scheme(scheme.clone());
            assert_eq!(
                one.assign(&workers, &partitions, None).unwrap(),
                many.assign(&workers, &partitions, None).unwrap(),
            );
        }
    }
}

#[test]
fn equal_weights_place_as_no_weights_do_whatever_the_weight() {
    let partitions = Partitions::shards([("default", 2000)]).unwrap();
    let at = |weight: f64| {
        let workers = (0..17).map(|n| {
            Worker::new(format!("w{n}"))
                .unwrap()
                .with_weight(weight)
                .unwrap()
        });
        let workers = Workers::new(workers).unwrap();
        Rendezvous::new()
            .assign(&workers, &partitions, None)
            .unwrap()
            .owners()
            .to_vec()
    };
    // One worker that differs sends every comparison through the logarithm.
    let mixed = {
        let others = (0..17).map(|n| Worker::new(format!("w{n}")).unwrap());
        let faint = Worker::new("zz").unwrap().with_weight(1e-6).unwrap();
        let workers = Workers::new(others.chain([faint])).unwrap();
        Rendezvous::new()
            .assign(&workers, &partitions, None)
            .unwrap()
            .owners()
            .to_vec()
    };
    assert_eq!(at(1.0), at(0.3));
    assert_eq!(at(1.0), at(1e6));
    assert_eq!(at(1.0), mixed);
}

#[test]
fn strategies_are_safe_to_share_between_threads() {
    let workers = Workers::numbered("worker", 20).unwrap();
    let partitions = Partitions::shards([("default", 500)]).unwrap();
    for strategy in strategies() {
        let expected = strategy.assign(&workers, &partitions, None).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(
                            strategy.assign(&workers, &partitions, None).unwrap(),
                            expected
                        );
                    }
                });
            }
        });
    }
}

/// A hundred thousand workers have about one pair of equal 32-bit hashes for
/// each partition, so ties are real.
#[test]
fn ties_go_to_the_smaller_id() {
    let workers = Workers::numbered("worker", 100_000).unwrap();
    let partitions = Partitions::shards([("default", 8)]).unwrap();
    let mut ties = 0;
    for partition in &partitions {
        let name = partition.as_str();
        let explanation = Rendezvous::new()
            .explain(name, &workers, &partitions, None)
            .unwrap();
        for pair in explanation.ranking.windows(2) {
            if pair[0].hash == pair[1].hash {
                assert!(pair[0].worker < pair[1].worker, "{pair:?}");
                ties += 1;
            }
        }
    }
    assert!(ties > 0, "there was no tie to look at");
}
