//! What-if is what happens: the moves that were foretold are those that a death
//! causes, whoever places partitions and whatever was done before.

use std::collections::BTreeMap;
use std::time::Duration;

use divvy_core::StrategyName;
use divvy_playground::{Engine, Setup};
use divvy_sim::Mode;
use serde_json::{Value, json};

/// Who has what, by partition.
fn owners(engine: &mut Engine) -> BTreeMap<String, i32> {
    let _ = engine.news();
    let partitions = engine.snapshot().partitions;
    partitions
        .names
        .into_iter()
        .zip(partitions.owners)
        .collect()
}

fn settled(setup: Setup, deeds: &[Value]) -> Engine {
    let mut engine = Engine::new(setup, 0).expect("a valid setup");
    engine.pass(Duration::from_secs(6));
    for deed in deeds {
        engine.request(deed.clone()).expect("it can be done");
    }
    engine.pass(Duration::from_secs(10));
    engine
}

/// Asks what the death of a worker would cause, and kills it.
fn foretold_and_seen(mut engine: Engine, worker: usize) -> [BTreeMap<String, i32>; 2] {
    let what_if = engine.what_if(worker).expect("it is there");
    let foretold = what_if.moves.into_iter();
    let foretold = foretold.map(|moved| (moved.partition, moved.to)).collect();
    let before = owners(&mut engine);
    let kill = json!({"action": "kill", "worker": worker});
    engine.request(kill).expect("it is there");
    engine.pass(Duration::from_secs(30));
    let after = owners(&mut engine).into_iter();
    let seen = after.filter(|(partition, owner)| before[partition] != *owner);
    [foretold, seen.collect()]
}

#[test]
fn what_if_is_what_happens_with_every_strategy_in_every_state() {
    let states: [&[Value]; 5] = [
        &[],
        &[json!({"action": "drain", "worker": 1})],
        &[json!({"action": "cordon", "worker": 3})],
        &[
            json!({"action": "pin", "partition": "orders:5", "worker": 0}),
            json!({"action": "pin", "partition": "orders:6", "worker": 2}),
        ],
        &[
            json!({"action": "weight", "worker": 4, "weight": 2.5}),
            json!({"action": "partition_weight", "partition": "orders:9", "weight": 7}),
        ],
    ];
    for strategy in [
        StrategyName::Balanced,
        StrategyName::WeightedConsistentHash,
        StrategyName::Zoned,
        StrategyName::Rendezvous,
        StrategyName::ConsistentHash,
        StrategyName::RoundRobin,
    ] {
        for (turn, deeds) in states.iter().enumerate() {
            let setup = Setup {
                workers: 6,
                partitions: 120,
                strategy,
                seed: 7 + turn as u64,
                ..Setup::default()
            };
            let [foretold, seen] = foretold_and_seen(settled(setup, deeds), 2);
            assert_eq!(foretold, seen, "{strategy}, state {turn}");
        }
    }
}

#[test]
fn what_is_not_worth_a_move_is_not_foretold() {
    let setup = Setup {
        workers: 6,
        partitions: 120,
        strategy: StrategyName::RoundRobin,
        ..Setup::default()
    };
    let what_if = settled(setup, &[]).what_if(2).expect("it is there");
    assert_eq!(what_if.moves.len(), 20);
}

#[test]
fn what_if_of_lease_mode_is_what_happens() {
    let setup = Setup {
        workers: 6,
        partitions: 120,
        ..Setup::default().in_mode(Mode::Lease)
    };
    let [foretold, seen] = foretold_and_seen(settled(setup, &[]), 2);
    assert_eq!(foretold, seen);
}
