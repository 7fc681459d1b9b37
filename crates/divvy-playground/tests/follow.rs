//! What followers are told is what there is: deltas applied to a snapshot give
//! the next one.

use std::time::Duration;

use divvy_playground::{Engine, News, Setup, builtin};
use divvy_sim::Mode;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Applies a delta as a page does.
fn apply(snapshot: &mut Value, delta: &Value) {
    assert!(delta["sequence"].as_u64() > snapshot["sequence"].as_u64());
    snapshot["sequence"] = delta["sequence"].clone();
    for field in [
        "clock",
        "store",
        "settings",
        "summary",
        "invariants",
        "scenario",
    ] {
        if let Some(value) = delta.get(field) {
            snapshot[field] = value.clone();
        }
    }
    snapshot["clock"]["now_ms"] = delta["now_ms"].clone();
    let mut workers: Vec<Value> = snapshot["workers"].as_array().unwrap().clone();
    for worker in delta["workers"].as_array().unwrap() {
        workers.retain(|known| known["number"] != worker["number"]);
        workers.push(worker.clone());
    }
    for removed in delta["removed"].as_array().unwrap() {
        workers.retain(|known| known["number"] != *removed);
    }
    workers.sort_by_key(|worker| worker["number"].as_u64());
    snapshot["workers"] = workers.into();
    let partitions = &mut snapshot["partitions"];
    if let Some(names) = delta.get("names") {
        let count = names.as_array().unwrap().len();
        *partitions = json!({
            "names": names,
            "weights": delta.get("weights"),
            "owners": vec![-1; count],
            "tokens": vec![""; count],
            "marks": vec![0; count],
        });
    }
    for changed in delta["partitions"].as_array().unwrap() {
        let index = changed[0].as_u64().unwrap() as usize;
        partitions["owners"][index] = changed[1].clone();
        partitions["tokens"][index] = changed[2].clone();
        partitions["marks"][index] = changed[3].clone();
    }
}

/// All but the charts, which are thinned out as they grow.
fn seen(engine: &Engine) -> Value {
    let mut snapshot = serde_json::to_value(engine.snapshot()).unwrap();
    snapshot["history"] = Value::Null;
    snapshot
}

fn actions() -> impl Strategy<Value = Value> {
    let worker = 0..8_usize;
    prop_oneof![
        worker
            .clone()
            .prop_map(|worker| json!({"action": "kill", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "stop", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "restart", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "pause", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "resume", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "isolate", "worker": worker, "how": "full"})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "reconnect", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "cordon", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "drain", "worker": worker})),
        worker
            .clone()
            .prop_map(|worker| json!({"action": "uncordon", "worker": worker})),
        (worker.clone(), 0.1..4.0_f64).prop_map(
            |(worker, weight)| json!({"action": "weight", "worker": worker, "weight": weight})
        ),
        (worker, any::<bool>())
            .prop_map(|(worker, on)| json!({"action": "unhealthy", "worker": worker, "on": on})),
        (1..80_usize).prop_map(|count| json!({"action": "partitions", "count": count})),
        (1..4_usize).prop_map(|count| json!({"action": "add", "count": count})),
        Just(json!({"action": "partition_weight", "partition": "orders:0", "weight": 7})),
        Just(json!({"action": "pin", "partition": "orders:0", "worker": 1})),
        Just(json!({"action": "store", "state": "slow"})),
        Just(json!({"action": "store", "state": "down"})),
        Just(json!({"action": "store", "state": "up"})),
        Just(json!({"action": "amnesia"})),
        Just(json!({"action": "speed", "speed": 3})),
        Just(json!({"action": "hold"})),
        Just(json!({"action": "run"})),
        Just(json!({"action": "refresh"})),
        Just(json!({"action": "reset", "workers": 3})),
        Just(json!({"action": "mode", "mode": "lease"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn deltas_applied_to_a_snapshot_give_the_next_one_whatever_is_done(
        is_lease: bool,
        seed in 0..1000_u64,
        done in prop::collection::vec((actions(), 1..900_u64), 1..24),
    ) {
        let mode = if is_lease { Mode::Lease } else { Mode::Leader };
        let mut setup = Setup::default().in_mode(mode);
        (setup.workers, setup.partitions, setup.seed) = (5, 40, seed);
        let mut engine = Engine::new(setup, 0).unwrap();
        let mut followed = seen(&engine);
        for (action, ms) in done {
            // What cannot be done as things are is refused, and changes nothing.
            let _ = engine.request(action);
            engine.pass(Duration::from_millis(ms));
            match engine.news() {
                Some(News::Delta(delta)) => {
                    apply(&mut followed, &serde_json::to_value(delta).unwrap());
                }
                Some(News::Reload { .. }) => followed = seen(&engine),
                None => {}
            }
            prop_assert_eq!(&followed, &seen(&engine));
            prop_assert_eq!(&followed["invariants"]["violations"], &json!([]));
        }
    }
}

#[test]
fn a_scenario_is_told_as_it_goes_on_and_ends_as_it_does_without_followers() {
    let scenario = builtin("half-the-fleet-dies").unwrap();
    let outcome = Engine::run_scenario(scenario.clone()).unwrap();
    let mut engine = Engine::new(Setup::default(), 0).unwrap();
    engine.start(scenario);
    let mut followed = seen(&engine);
    // In steps that have nothing to do with those of the measurement.
    for _ in 0..400 {
        engine.pass(Duration::from_millis(73));
        match engine.news() {
            Some(News::Delta(delta)) => {
                apply(&mut followed, &serde_json::to_value(delta).unwrap());
            }
            Some(News::Reload { .. }) => followed = seen(&engine),
            None => {}
        }
    }
    assert_eq!(followed["scenario"]["state"], "passed");
    let numbers = serde_json::to_value(outcome.numbers).unwrap();
    assert_eq!(followed["scenario"]["numbers"], numbers);
}

#[test]
fn what_if_is_what_then_happens() {
    for mode in [Mode::Leader, Mode::Lease] {
        let mut setup = Setup::default().in_mode(mode);
        (setup.workers, setup.partitions) = (6, 120);
        let mut engine = Engine::new(setup, 0).unwrap();
        engine.pass(Duration::from_secs(15));
        let snapshot = seen(engine_told(&mut engine));
        assert_eq!(snapshot["summary"]["converged"], true, "{mode}");
        let plan = engine.what_if(2).unwrap();
        assert!(!plan.moves.is_empty());
        engine
            .request(json!({"action": "kill", "worker": 2}))
            .unwrap();
        engine.pass(Duration::from_millis(plan.bound_ms));
        let after = seen(engine_told(&mut engine));
        let names = after["partitions"]["names"].as_array().unwrap();
        for planned in &plan.moves {
            let index = names.iter().position(|name| *name == planned.partition);
            let owner = &after["partitions"]["owners"][index.unwrap()];
            assert_eq!(
                owner.as_i64(),
                Some(i64::from(planned.to)),
                "{mode}: {planned:?}"
            );
        }
        assert_eq!(plan.unchanged + plan.moves.len(), names.len());
    }
}

/// The same engine, when everything that there is has been told.
fn engine_told(engine: &mut Engine) -> &mut Engine {
    let _ = engine.news();
    engine
}
