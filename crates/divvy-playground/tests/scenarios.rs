//! Every built-in scenario reaches its goal, and the same one every time.

use divvy_playground::{Engine, Scenario, builtin, builtins};

#[test]
fn every_built_in_scenario_reaches_its_goal() {
    let scenarios = builtins();
    assert!(scenarios.len() >= 20);
    let mut failed = Vec::new();
    for scenario in scenarios {
        let outcome = Engine::run_scenario(scenario).expect("it is valid");
        if !outcome.passed || outcome.violations > 0 {
            failed.push(outcome);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn names_of_built_in_scenarios_differ_and_find_them() {
    let names: Vec<String> = builtins().iter().map(|s| s.name().to_owned()).collect();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name), "{name}");
        assert_eq!(builtin(name).expect("it is there").name(), name);
    }
    assert!(builtin("no-such-scenario").is_none());
}

#[test]
fn the_same_seed_is_the_same_outcome_and_another_is_another_world() {
    for name in ["half-the-fleet-dies", "lease-half-the-fleet-dies"] {
        let scenario = builtin(name).expect("it is built in");
        let first = Engine::run_scenario(scenario.clone()).expect("it is valid");
        let second = Engine::run_scenario(scenario.clone()).expect("it is valid");
        assert_eq!(first, second);
        let other = Engine::run_scenario(scenario.with_seed(8)).expect("it is valid");
        assert!(other.passed, "{other:#?}");
        assert_ne!(first.seed, other.seed);
    }
}

const IMPOSSIBLE: &str = "
name: impossible
title: Impossible
about: A worker dies, and nothing may be without an owner.
lasts_ms: 10000
steps:
  - {at_ms: 5000, do: kill, worker: 3}
goal:
  says: nothing is ever without an owner
  numbers:
    most_unowned: {at_most: 0}
";

#[test]
fn a_goal_that_cannot_be_reached_is_not() {
    let scenario = Scenario::from_yaml(IMPOSSIBLE).expect("it is valid");
    let outcome = Engine::run_scenario(scenario).expect("it is valid");
    assert!(!outcome.passed);
    assert_eq!(outcome.violations, 0);
    assert!(outcome.numbers[0].measured > 0.0 && !outcome.numbers[0].met);
}

#[test]
fn documents_that_are_wrong_are_refused_with_what_is_wrong() {
    let cases = [
        ("lasts_ms: 10000", "lasts_ms: 0", "lasts_ms"),
        ("name: impossible", "name: Not Plain", "name"),
        ("title: Impossible\n", "", "title"),
        ("do: kill", "do: explode", "explode"),
        ("do: kill", "do: reset", "reset"),
        ("at_ms: 5000", "at_ms: 50000", "at_ms"),
        ("worker: 3", "worker: nobody", "nobody"),
        ("worker: 3", "worker: 3, colour: blue", "colour"),
        ("most_unowned", "most_unhappy", "most_unhappy"),
        ("{at_most: 0}", "{at_best: 0}", "at_best"),
        ("{at_most: 0}", "{}", "at_most or at_least"),
        (
            "lasts_ms: 10000",
            "lasts_ms: 10000\nmode: lease\nstrategy: zoned",
            "zoned",
        ),
        ("lasts_ms: 10000", "lasts_ms: 10000\nworkers: 501", "501"),
        (
            "lasts_ms: 10000",
            "lasts_ms: 10000\nsurprise: 1",
            "surprise",
        ),
    ];
    for (before, after, named) in cases {
        let text = IMPOSSIBLE.replace(before, after);
        assert_ne!(text, IMPOSSIBLE, "{before}");
        let error = Scenario::from_yaml(&text).expect_err(after).to_string();
        assert!(error.contains(named), "{after}: {error}");
    }
    let error = |text: &str| Scenario::from_yaml(text).expect_err(text).to_string();
    let unread = error(&IMPOSSIBLE.replace("worker: 3}", "worker: 3"));
    assert!(
        unread.contains("line ") && unread.contains("column "),
        "{unread}"
    );
    assert!(!unread.contains('…'), "{unread}");
    let unknown = error(&IMPOSSIBLE.replace("worker: 3", "worker: 3, colour: blue"));
    assert!(
        unknown.contains("step '1'") && unknown.contains("each_after_ms"),
        "{unknown}"
    );
    let undone = error(&IMPOSSIBLE.replace("do: kill", "do: kil"));
    assert!(
        undone.contains("kill, restart") && !undone.contains("reset"),
        "{undone}"
    );
    assert!(Scenario::from_yaml("- 1\n- 2\n").is_err());
    assert!(Scenario::from_yaml("{").is_err());
    assert!(Scenario::from_yaml(&"#".repeat(300_000)).is_err());
}
