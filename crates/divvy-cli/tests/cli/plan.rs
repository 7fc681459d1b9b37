//! `divvy plan`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::scratch::{Scratch, divvy};

/// The reference scenario of weighted placement: 2850 partitions of weight 100
/// and 150 of 10,000 to 50,000.
fn reference(seed: u64) -> String {
    let mut state = seed;
    let mut drawn = || {
        // Knuth's generator; its high bits are good enough for weights.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        10_000 + (state >> 33) % 40_001
    };
    let normal = (0..2850).map(|number| format!("normal:{number},100\n"));
    let heavy = (0..150).map(|number| format!("heavy:{number},{}\n", drawn()));
    let rows: String = normal.chain(heavy).collect();
    format!("key,weight\n{rows}")
}

fn plan(line: &str) -> Value {
    divvy(&format!("plan --json {line}")).json()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let map = value.as_object().expect("a map");
    map.keys().map(String::as_str).collect()
}

/// Owners by partition, of what has `assignments`.
fn owners(document: &Value) -> BTreeMap<String, String> {
    let assignments = document["assignments"].as_object().expect("a map");
    let owned = assignments.iter().flat_map(|(worker, owned)| {
        let names = list(owned)
            .iter()
            .map(|name| name.as_str().expect("a name"));
        names.map(|name| (name.to_owned(), worker.clone()))
    });
    owned.collect()
}

fn counts(side: &Value) -> Vec<u64> {
    let workers = list(&side["workers"]).iter();
    workers
        .map(|worker| worker["partitions"].as_u64().expect("a count"))
        .collect()
}

#[test]
fn ten_more_workers_leave_weighted_loads_inside_the_band_and_move_little() {
    for seed in [1, 2, 3] {
        let scratch = Scratch::new();
        scratch.file("reference.csv", reference(seed));
        let line = "plan --strategy weighted-consistent-hash --workers 100 --add 10 \
                    --partitions @reference.csv --json";
        let document = scratch.run(line.split_whitespace()).json();
        for side in ["before", "after"] {
            assert!(number(&document[side]["max_over_mean"]) <= 1.3, "{seed}");
            assert!(number(&document[side]["min_over_mean"]) >= 0.7, "{seed}");
        }
        assert!(number(&document["moved_fraction"]) <= 0.05, "{seed}");
        assert!(document["moves"].as_u64() >= document["minimum_moves"].as_u64());
        assert_eq!(document["orphans"], 0);
        assert_eq!(list(&document["after"]["workers"]).len(), 110);
    }
}

#[test]
fn balanced_takes_exactly_what_a_fourth_worker_needs() {
    let document = plan("--strategy balanced --workers 3 --add 1 --partitions 2048");
    assert_eq!(document["moves"], 512);
    assert_eq!(document["minimum_moves"], 512);
    assert_eq!(document["moved_fraction"], 0.25);
    assert_eq!(document["moved_weight_fraction"], 0.25);
    assert_eq!(counts(&document["before"]), [683, 683, 682]);
    assert_eq!(counts(&document["after"]), [512; 4]);
    let changes = list(&document["changes"]);
    assert!(changes.iter().all(|change| change["to"] == "worker-3"));
}

#[test]
fn a_worker_that_leaves_takes_only_its_own_partitions_with_it() {
    let line = "--strategy balanced --workers 100 --partitions 2048";
    let document = plan(&format!("{line} --remove worker-17"));
    let before = divvy(&format!("assign --json {line}")).json();
    let orphaned: Vec<&Value> = list(&before["assignments"]["worker-17"]).iter().collect();
    let changes = list(&document["changes"]);
    let moved: Vec<&Value> = changes.iter().map(|change| &change["partition"]).collect();
    assert_eq!(moved, orphaned);
    assert_eq!(document["orphans"], orphaned.len());
    assert_eq!(document["moves"], orphaned.len());
    for change in changes {
        assert_eq!(change["from"], "worker-17");
        assert_eq!(change["cause"], "worker_gone");
    }
}

#[test]
fn zones_are_even_before_and_after_one_of_them_loses_a_worker() {
    let scratch = Scratch::new();
    let rows: String = (0..9)
        .map(|number| format!("w-{number},zone-{}\n", number % 3))
        .collect();
    scratch.file("workers.csv", format!("id,zone\n{rows}"));
    let line = "plan --strategy zoned --workers @workers.csv --partitions 900 --remove w-0 --json";
    let document = scratch.run(line.split(' ')).json();
    let mut zones: BTreeMap<&str, u64> = BTreeMap::new();
    for worker in list(&document["after"]["workers"]) {
        let zone = worker["zone"].as_str().expect("a zone");
        *zones.entry(zone).or_default() += worker["partitions"].as_u64().expect("a count");
    }
    let zones: Vec<u64> = zones.into_values().collect();
    // By weight: 2 workers of 8, 3 and 3.
    assert_eq!(zones[0], 225);
    assert!(zones[1].abs_diff(zones[2]) <= 1, "{zones:?}");
    assert!(
        counts(&document["after"])
            .iter()
            .all(|&count| (112..=113).contains(&count))
    );
    assert_eq!(document["orphans"], 100);
    assert_eq!(document["moves"], document["minimum_moves"]);
}

#[test]
fn json_has_the_documented_shape() {
    let document = plan("--strategy balanced --workers 3 --add 1 --partitions 64");
    assert_eq!(
        keys(&document),
        BTreeSet::from([
            "format",
            "strategy",
            "before",
            "after",
            "moves",
            "moved_fraction",
            "moved_weight_fraction",
            "minimum_moves",
            "orphans",
            "certificate",
            "changes",
        ])
    );
    assert_eq!(document["format"], 1);
    for (side, workers) in [("before", 3), ("after", 4)] {
        for field in ["max_over_mean", "min_over_mean", "stddev_over_mean"] {
            assert!(document[side][field].is_number(), "{side} {field}");
        }
        assert_eq!(list(&document[side]["workers"]).len(), workers);
        for worker in list(&document[side]["workers"]) {
            assert!(worker["id"].is_string());
            assert!(worker["partitions"].is_u64() && worker["load"].is_u64());
        }
    }
    let needed = BTreeSet::from(["partition", "from", "to", "cause"]);
    for change in list(&document["changes"]) {
        assert!(keys(change).is_superset(&needed), "{change}");
        assert_eq!(change["cause"], "over_band");
    }
    assert_eq!(document["changes"].as_array().map(Vec::len), Some(16));
}

#[test]
fn the_changes_lead_from_before_to_after() {
    let scratch = Scratch::new();
    scratch.file("reference.csv", reference(7));
    for strategy in [
        "rendezvous",
        "balanced",
        "weighted-consistent-hash",
        "zoned",
        "consistent-hash",
        "round-robin",
    ] {
        let line = format!("--strategy {strategy} --workers 12 --partitions @reference.csv --json");
        let before = scratch.run(format!("assign {line}").split(' ')).json();
        let line = format!("plan {line} --add 2 --remove worker-3,worker-11");
        let document = scratch.run(line.split(' ')).json();
        let mut owners_now = owners(&before);
        for change in list(&document["changes"]) {
            let text = |field: &str| change[field].as_str().expect("a name").to_owned();
            let from = owners_now.insert(text("partition"), text("to"));
            assert_eq!(from, Some(text("from")), "{strategy}");
        }
        assert_eq!(owners_now, owners(&document["after"]), "{strategy}");
        assert_eq!(counts(&document["before"]), counts(&before), "{strategy}");
        let sum = |side: &Value| counts(side).iter().sum::<u64>();
        assert_eq!(sum(&document["after"]), 3000, "{strategy}");
    }
}

#[test]
fn a_plan_is_what_assign_does() {
    let scratch = Scratch::new();
    scratch.file("reference.csv", reference(9));
    for strategy in ["balanced", "weighted-consistent-hash", "zoned"] {
        let line = format!("assign --strategy {strategy} --workers 10 --partitions");
        let before = scratch.run(format!("{line} @reference.csv --json").split(' '));
        scratch.file("before.json", before.done());
        let common = format!("--strategy {strategy} --previous @before.json --json");
        let planned = scratch
            .run(format!("plan {common} --add 1").split(' '))
            .json();
        let assigned = scratch
            .run(format!("assign {common} --workers 11").split(' '))
            .json();
        assert_eq!(
            planned["after"]["assignments"], assigned["assignments"],
            "{strategy}"
        );
        let moved = list(&assigned["moves"]).len();
        assert_eq!(planned["moves"], moved, "{strategy}");
        assert!(moved < 300, "{strategy} moved {moved}");
    }
}

#[test]
fn a_plan_from_a_plan_moves_nothing() {
    let scratch = Scratch::new();
    scratch.file("reference.csv", reference(4));
    for strategy in ["balanced", "weighted-consistent-hash", "zoned"] {
        let line = format!("plan --strategy {strategy} --workers 10 --add 1 --json --partitions");
        let first = scratch
            .run(format!("{line} @reference.csv").split(' '))
            .done();
        scratch.file("plan.json", first);
        let line = format!("plan --strategy {strategy} --previous @plan.json");
        let document = scratch.run(format!("{line} --json").split(' ')).json();
        assert_eq!(document["moves"], 0, "{strategy}");
        assert_eq!(document["changes"], json!([]), "{strategy}");
        assert_eq!(counts(&document["before"]), counts(&document["after"]));
        let text = scratch.run(line.split(' ')).done();
        let mut lines = text.lines();
        let first = lines.next().expect("a line for planners");
        assert!(first.starts_with("nothing moves; the fullest worker is then worker-"));
        let heading = format!("{strategy}: 3000 partitions, 11 workers -> 11");
        assert_eq!(lines.next(), Some(heading.as_str()));
        assert!(!text.contains("cause"), "{text}");
    }
}

#[test]
fn without_a_change_of_workers_a_plan_is_what_would_be_repaired() {
    let scratch = Scratch::new();
    let all = r#"{"format": 1, "assignments": {"a": ["p:0", "p:1", "p:2", "p:3"], "b": []}}"#;
    scratch.file("before.json", all);
    let line = "plan --strategy balanced --previous @before.json --json";
    let document = scratch.run(line.split(' ')).json();
    assert_eq!(counts(&document["before"]), [4, 0]);
    assert_eq!(counts(&document["after"]), [2, 2]);
    assert_eq!(document["moves"], 2);
    let line = "plan --strategy balanced --previous @before.json --workers b --json";
    let document = scratch.run(line.split(' ')).json();
    assert_eq!(
        (&document["moves"], &document["orphans"]),
        (&json!(4), &json!(4))
    );
}

#[test]
fn partitions_may_come_and_go() {
    let scratch = Scratch::new();
    let before = divvy("assign --strategy balanced --workers 2 --partitions a:5,b:3 --json");
    scratch.file("before.json", before.done());
    let line = "plan --strategy balanced --previous @before.json --partitions a:5,c:3";
    let document = scratch.run(format!("{line} --json").split(' ')).json();
    assert_eq!(counts(&document["after"]), [4, 4]);
    let new = list(&document["changes"]).iter();
    assert_eq!(new.filter(|change| change["from"].is_null()).count(), 3);
    let text = scratch.run(line.split(' ')).done();
    let moves = text.lines().nth(1).expect("a summary");
    assert!(moves.contains("3 new, 3 gone"), "{moves}");
}

#[test]
fn what_is_before_is_weighed_as_it_is_now() {
    let scratch = Scratch::new();
    scratch.file(
        "before.json",
        r#"{"format": 1, "partition_weights": {"x": 10, "y": 10}, "assignments": {"a": ["x"], "b": ["y"]}}"#,
    );
    scratch.file("p.csv", "key,weight\nx,30\ny,10\n");
    let line = "plan --strategy zoned --previous @before.json --partitions @p.csv --json";
    let document = scratch.run(line.split(' ')).json();
    let loads: Vec<&Value> = list(&document["before"]["workers"])
        .iter()
        .map(|worker| &worker["load"])
        .collect();
    assert_eq!(loads, [&json!(30), &json!(10)]);
    assert_eq!(document["before"]["max_over_mean"], 1.5);
}

#[test]
fn people_get_a_summary_causes_workers_and_the_first_changes() {
    let text = divvy("plan --strategy balanced --workers 3 --add 1 --partitions 2048").done();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "512 of 2048 partitions move (25.0 %), 25.0 % of the load; the fullest worker is then \
             worker-0 with 512 partitions, 1.00 times its share"
        )
    );
    assert_eq!(
        lines.next(),
        Some("balanced: 2048 partitions, 3 workers -> 4, at least 512 needed, 0 orphans")
    );
    assert_eq!(
        lines.next(),
        Some("added worker-3: of weight 1, as the others have")
    );
    for expected in [
        "max/mean 1.000 1.000",
        "min/mean 0.999 1.000",
        "over its share 512 its worker had more than it should",
        "worker-2 682 -> 512 -170 ████████████████████████│",
        "worker-3 - -> 512 +512 new ████████████████████████│",
        "partition from to cause",
        "492 of 512 changes left out: --list or --json shows all",
    ] {
        let words: Vec<&str> = expected.split(' ').collect();
        let found = text
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>() == words);
        assert!(found, "{expected}: {text}");
    }
    let changes = |text: &str| text.matches("\ndefault:").count();
    assert_eq!(changes(&text), 20);
    let line = "plan --strategy balanced --workers 3 --add 1 --partitions 2048 --list";
    let listed = divvy(line).done();
    assert_eq!(changes(&listed), 512);
    assert!(!listed.contains("left out"));
}

#[test]
fn those_who_leave_are_shown_and_loads_where_there_are_weights() {
    let scratch = Scratch::new();
    scratch.file("p.csv", "key,weight\nx,5\ny,7\nz,3\n");
    let line = "plan --workers a,b,c --remove b --partitions @p.csv --strategy";
    let text = scratch.run(format!("{line} round-robin").split(' ')).done();
    let heading = text.lines().find(|line| line.ends_with("│ mean"));
    let heading: Vec<&str> = heading.expect("a table").split_whitespace().collect();
    assert_eq!(
        heading[..5],
        ["worker", "partitions", "load", "change", "note"]
    );
    let gone = text.lines().find(|line| line.starts_with("b "));
    let gone: Vec<&str> = gone.expect("a row").split_whitespace().collect();
    assert_eq!(gone, ["b", "1", "->", "-", "7", "->", "-", "-1", "gone"]);
}

#[test]
fn what_the_band_cannot_hold_is_said_in_a_sentence() {
    let scratch = Scratch::new();
    let told = |weights: &str, expected: &str| {
        let rows = weights.split(' ').enumerate();
        let rows: String = rows
            .map(|(n, weight)| format!("p:{n},{weight}\n"))
            .collect();
        scratch.file("p.csv", format!("key,weight\n{rows}"));
        let line = "plan --strategy weighted-consistent-hash --workers 4 --add 1 --partitions";
        let text = scratch.run(format!("{line} @p.csv").split(' ')).done();
        let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(expected), "{expected}: {text}");
    };
    told(
        "100 101 100 101 100 103 104",
        "2 workers are outside of the band, 0.70 to 1.30 times the share: no moves were found",
    );
    told(
        "10000 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115",
        "1 partition is too heavy for the band of any worker: it has a worker of its own, and the \
         band is around what the others average, 0.",
    );
    told(
        "9 8",
        "each has a worker of its own, and nothing is left for the others.",
    );
    let ring = "plan --strategy weighted-consistent-hash --workers 30 --add 1 --partitions 300";
    let text = divvy(ring).done();
    assert!(
        text.contains("no band is\nkept: --no-fast-path keeps it"),
        "{text}"
    );
    let text = divvy(&format!("{ring} --no-fast-path")).done();
    assert!(!text.contains("no band"), "{text}");
}
