//! What is told is what happened: starts, failures, owners and clocks.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use divvy_playground::document::Event;
use divvy_playground::{Engine, News, Scenario, Setup, builtin};
use serde_json::{Value, json};

fn engine(setup: Setup) -> Engine {
    let mut engine = Engine::new(setup, 0).expect("a valid setup");
    engine.pass(Duration::from_secs(5));
    let _ = engine.news();
    engine
}

fn small() -> Setup {
    Setup {
        workers: 4,
        partitions: 32,
        ..Setup::default()
    }
}

/// Lets so many tenths of a second pass; gives what was told meanwhile.
fn told(engine: &mut Engine, tenths: u64) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..tenths {
        engine.pass(Duration::from_millis(100));
        if let Some(News::Delta(delta)) = engine.news() {
            events.extend(delta.events);
        }
    }
    events
}

fn snapshot(engine: &mut Engine) -> Value {
    let _ = engine.news();
    serde_json::to_value(engine.snapshot()).expect("snapshots have a JSON form")
}

#[test]
fn what_could_not_be_started_is_not_told_as_started_and_its_failure_once() {
    let mut engine = engine(small());
    for action in [
        json!({"action": "broken", "worker": 1, "on": true}),
        json!({"action": "kill", "worker": 0}),
    ] {
        engine.request(action).expect("it can be done");
    }
    let events = told(&mut engine, 150);
    let failed = "host-1 could not start";
    assert!(events.iter().any(|event| event.text.contains(failed)));
    let mut failing = BTreeSet::new();
    for event in &events {
        let partition = event.partition.clone();
        match event.kind {
            "started" | "moved" => {
                assert_ne!(event.to, Some(1), "{}", event.text);
                failing.remove(&partition);
            }
            "error" if event.text.contains(failed) => {
                assert!(failing.insert(partition), "told again: {}", event.text);
            }
            "error" => assert!(!event.text.contains("start hook of"), "{}", event.text),
            _ => {}
        }
    }
    let moves = snapshot(&mut engine)["summary"]["moves"].as_u64();
    let moved = events.iter().filter(|event| event.kind == "moved").count();
    assert_eq!(moves, Some(moved as u64));
}

#[test]
fn who_works_beside_others_is_shown_with_what_it_really_runs() {
    let overlap = Setup {
        exclusive: false,
        ..small()
    };
    let mut seen = Vec::new();
    for setup in [overlap, small()] {
        let is_exclusive = setup.exclusive;
        let mut engine = engine(setup);
        let cut = json!({"action": "isolate", "worker": 3, "how": "store"});
        engine.request(cut).expect("it can be done");
        engine.pass(Duration::from_secs(6));
        let snapshot = snapshot(&mut engine);
        let summary = &snapshot["summary"];
        seen.push((summary["mean"].clone(), summary["imbalance"].clone()));
        assert_eq!(snapshot["workers"][3]["share"], 0.0);
        if is_exclusive {
            assert_eq!(snapshot["workers"][3]["owned"], 0);
            continue;
        }
        for worker in snapshot["workers"].as_array().expect("workers") {
            assert!(worker["lease_left_ms"].is_null(), "{worker}");
        }
        assert_eq!(snapshot["workers"][3]["owned"], 8);
        assert_eq!(summary["two_owners"], 8);
        let worker = engine.explain_worker(3).expect("it is there");
        let worker = serde_json::to_value(worker).expect("it has a JSON form");
        let explain = worker["explain"].as_str().expect("a text");
        assert!(!explain.contains("stops before"), "{explain}");
        let name = worker["partitions"][0].as_str().expect("it has some");
        let partition = engine.explain_partition(name).expect("it is there");
        let partition = serde_json::to_value(partition).expect("it has a JSON form");
        assert_eq!(partition["also"], json!([3]));
        let why = partition["why"].as_str().expect("a text");
        let owner = partition["owner"].as_u64().expect("somebody has it");
        assert!(
            why.contains("host-3") && why.contains(&format!("host-{owner}")),
            "{why}"
        );
    }
    assert_eq!(seen[0], seen[1], "a cut-off worker counts the same in both");
}

#[test]
fn a_reset_goes_back_to_what_was_chosen_and_not_to_what_a_scenario_brought() {
    let mut engine = engine(small());
    engine.start(builtin("overlap").expect("it is built in"));
    assert_eq!(snapshot(&mut engine)["settings"]["exclusive"], false);
    let reset = json!({"action": "reset"});
    engine.request(reset.clone()).expect("it can be done");
    let shown = snapshot(&mut engine);
    assert_eq!(shown["settings"]["exclusive"], true);
    assert_eq!(shown["workers"].as_array().map(Vec::len), Some(4));
    let settings = json!({"action": "settings", "exclusive": false});
    engine.request(settings).expect("it can be done");
    engine.start(builtin("cold-start").expect("it is built in"));
    engine.request(reset).expect("it can be done");
    assert_eq!(snapshot(&mut engine)["settings"]["exclusive"], false);
}

#[test]
fn a_scenario_leaves_its_world_as_it_was_at_its_end() {
    let mut engine = engine(small());
    let scenario = builtin("cold-start").expect("it is built in");
    let lasts_ms = scenario.lasts_ms();
    engine.start(scenario);
    let speed = json!({"action": "speed", "speed": 100});
    engine.request(speed).expect("it can be done");
    let by = Instant::now() + Duration::from_secs(60);
    for _ in 0..4 {
        engine.follow(Duration::from_secs(1), by);
    }
    let shown = snapshot(&mut engine);
    assert_eq!(shown["clock"]["now_ms"], lasts_ms);
    assert_eq!(shown["scenario"]["state"], "passed");
    assert!(shown["scenario"]["reason"].is_null());
}

#[test]
fn a_world_that_cannot_keep_up_says_so() {
    let mut engine = engine(small());
    assert_eq!(snapshot(&mut engine)["clock"]["lagging"], false);
    for _ in 0..3 {
        engine.follow(Duration::from_millis(500), Instant::now());
    }
    assert_eq!(snapshot(&mut engine)["clock"]["lagging"], true);
    let by = Instant::now() + Duration::from_secs(60);
    engine.follow(Duration::from_millis(100), by);
    assert_eq!(snapshot(&mut engine)["clock"]["lagging"], false);
}

#[test]
fn before_anybody_has_joined_that_is_why_nobody_has_anything() {
    let mut engine = Engine::new(small(), 0).expect("a valid setup");
    let partition = engine.explain_partition("orders:1").expect("it is there");
    let partition = serde_json::to_value(partition).expect("it has a JSON form");
    assert_eq!(partition["why"], "nobody has it: no worker has joined yet");
}

#[test]
fn the_ranking_of_lease_mode_says_what_was_hashed() {
    let mut engine = engine(small().in_mode(divvy_sim::Mode::Lease));
    let partition = engine.explain_partition("orders:5").expect("it is there");
    let partition = serde_json::to_value(partition).expect("it has a JSON form");
    let ranking = partition["ranking"].as_array().expect("a ranking");
    let hashes: BTreeSet<&str> = ranking
        .iter()
        .filter_map(|rank| rank["hash"].as_str())
        .collect();
    assert_eq!(hashes.len(), 4, "{ranking:?}");
    assert!(
        hashes
            .iter()
            .all(|hash| hash.starts_with("0x") && hash.len() == 18)
    );
    let highest = ranking[0]["hash"].as_str();
    assert_eq!(highest, hashes.last().copied(), "where all weigh the same");
}

const ZONED: &str = "
name: nobody-there
title: Nobody is there
about: A zone dies that nobody is in.
lasts_ms: 4000
steps:
  - {at_ms: 3000, do: kill, workers: 'zone:zz'}
  - {at_ms: 3500, do: kill, worker: 77}
goal:
  says: all is well
  numbers:
    unowned: {at_most: 256}
";

#[test]
fn a_step_about_nobody_is_refused_and_the_reason_told() {
    let scenario = Scenario::from_yaml(ZONED).expect("it is valid");
    let outcome = Engine::run_scenario(scenario).expect("it is valid");
    assert!(!outcome.passed && outcome.numbers.iter().all(|number| number.met));
    assert_eq!(
        outcome.reason.as_deref(),
        Some(
            "step 1 (kill at 3000 ms) was refused: it is about nobody: nobody is in the zone zz; \
             and 1 more were refused"
        )
    );
}
