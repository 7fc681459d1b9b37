//! `divvy assign`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::scratch::{Scratch, divvy};

fn counts(document: &Value) -> Vec<u64> {
    let workers = document["workers"].as_array().expect("a list");
    workers
        .iter()
        .map(|worker| worker["partitions"].as_u64().expect("a count"))
        .collect()
}

#[test]
fn json_has_the_documented_shape() {
    let document =
        divvy("assign --strategy rendezvous --workers 3 --partitions 2048 --json").json();
    let fields: BTreeSet<&str> = document
        .as_object()
        .expect("a map")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        BTreeSet::from(["format", "strategy", "workers", "balance", "assignments"])
    );
    assert_eq!(document["format"], 1);
    assert_eq!(document["strategy"], "rendezvous");
    for field in ["max_over_mean", "min_over_mean", "stddev_over_mean"] {
        assert!(document["balance"][field].is_number(), "{field}");
    }
    let mut placed = BTreeSet::new();
    for worker in document["workers"].as_array().expect("a list") {
        let id = worker["id"].as_str().expect("an id");
        let owned = document["assignments"][id].as_array().expect("a list");
        assert_eq!(worker["partitions"], owned.len());
        assert_eq!(worker["load"], owned.len());
        assert_eq!(worker["weight"], 1.0);
        placed.extend(
            owned
                .iter()
                .map(|name| name.as_str().expect("a name").to_owned()),
        );
    }
    assert_eq!(
        placed,
        (0..2048)
            .map(|number| format!("default:{number}"))
            .collect()
    );
}

#[test]
fn the_scheme_cruster_gives_the_counts_of_cruster() {
    let workers = "--workers host1:9000,host2:9000,host3:9000 --partitions 2048 --json";
    let document = divvy(&format!(
        "assign --strategy rendezvous --scheme cruster {workers}"
    ))
    .json();
    assert_eq!(counts(&document), [666, 683, 699]);
}

#[test]
fn every_strategy_places_everything() {
    for strategy in [
        "rendezvous",
        "rendezvous-parallel",
        "balanced",
        "weighted-consistent-hash",
        "zoned",
        "consistent-hash",
        "round-robin",
    ] {
        let line = format!("assign --strategy {strategy} --workers 3 --partitions 2048 --json");
        let document = divvy(&line).json();
        assert_eq!(document["strategy"], strategy);
        assert_eq!(counts(&document).iter().sum::<u64>(), 2048, "{strategy}");
        assert!(
            counts(&document).iter().all(|&count| count > 0),
            "{strategy}"
        );
    }
    let dealt = divvy("assign --strategy round-robin --workers 3 --partitions 2048 --json").json();
    assert_eq!(counts(&dealt), [683, 683, 682]);
}

#[test]
fn options_reach_the_strategy() {
    let placed = |options: &str| {
        divvy(&format!(
            "assign --workers 5 --partitions 64 --json {options}"
        ))
        .json()
    };
    let plain = placed("");
    assert_eq!(plain, placed("--seed 0 --scheme native"));
    assert_ne!(plain["assignments"], placed("--seed 1")["assignments"]);
    let ring = placed("--strategy consistent-hash");
    assert_eq!(
        ring,
        placed("--strategy consistent-hash --virtual-nodes 150 --seed 0")
    );
    assert_ne!(
        ring["assignments"],
        placed("--strategy consistent-hash --virtual-nodes 10")["assignments"]
    );
    let rendezgo = placed("--scheme rendezgo");
    assert_eq!(rendezgo, placed("--scheme rendezgo --cluster default"));
    assert_ne!(
        rendezgo["assignments"],
        placed("--scheme rendezgo --cluster other")["assignments"]
    );
}

#[test]
fn ids_weights_and_groups_are_taken_as_typed() {
    let document =
        divvy("assign --workers big=3,small,off=0 --partitions orders:64,users:32 --json").json();
    let weights: Vec<&Value> = document["workers"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|w| &w["weight"])
        .collect();
    assert_eq!(weights, [&json!(3.0), &json!(0.0), &json!(1.0)]);
    assert_eq!(document["assignments"]["off"], json!([]));
    let big = document["assignments"]["big"]
        .as_array()
        .expect("a list")
        .len();
    let small = document["assignments"]["small"]
        .as_array()
        .expect("a list")
        .len();
    assert_eq!(big + small, 96);
    assert!(big > small);
}

#[test]
fn the_table_counts_as_people_do() {
    let text = divvy("assign --workers 12 --partitions 600").done();
    let ids: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.starts_with("worker-"))
        .collect();
    let expected: Vec<String> = (0..12).map(|number| format!("worker-{number}")).collect();
    assert_eq!(ids, expected);
    let summary = text.lines().last().expect("a summary");
    assert!(
        summary.starts_with("rendezvous: 600 partitions on 12 workers, max/mean 1."),
        "{summary}"
    );
    assert!(
        summary.contains(", min/mean 0.") && summary.contains(", stddev/mean 0."),
        "{summary}"
    );
}

#[test]
fn the_table_has_only_the_columns_that_say_something() {
    let heading = |line: &str| {
        let text = divvy(line).done();
        text.lines()
            .next()
            .expect("a heading")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let plain = heading("assign --workers 3 --partitions 10");
    assert_eq!(plain, ["worker", "partitions", "share", "│", "mean"]);
    let weighted = heading("assign --workers a=2,b --partitions 10");
    assert_eq!(
        weighted,
        ["worker", "weight", "partitions", "share", "│", "mean"]
    );
}

#[test]
fn the_table_agrees_with_the_json() {
    let text = divvy("assign --workers 5 --partitions 64").done();
    let document = divvy("assign --workers 5 --partitions 64 --json").json();
    for (line, count) in text.lines().skip(1).zip(counts(&document)) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[1], count.to_string(), "{line}");
        assert_eq!(
            cells[2],
            format!("{:.1}%", count as f64 / 64.0 * 100.0),
            "{line}"
        );
        assert!(cells[3].starts_with('█'), "{line}");
    }
}

#[test]
fn a_list_has_every_partition_once_in_natural_order() {
    let text = divvy("assign --workers 2 --partitions 40 --list").done();
    let names: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  "))
        .flat_map(str::split_whitespace)
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 40);
    assert_eq!(names.len(), 40);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let first_worker = text
        .lines()
        .skip_while(|line| !line.starts_with("worker-0 ("))
        .skip(1);
    let numbers: Vec<u32> = first_worker
        .take_while(|line| line.starts_with("  "))
        .flat_map(str::split_whitespace)
        .map(|name| name["default:".len()..].parse().expect("a number"))
        .collect();
    assert!(numbers.is_sorted() && numbers.len() > 5, "{numbers:?}");
}

#[test]
fn nothing_to_place_is_no_mistake() {
    let text = divvy("assign --workers 2 --partitions 0").done();
    assert!(
        text.contains("0 partitions on 2 workers, max/mean 1.000"),
        "{text}"
    );
    assert!(!text.contains("NaN"), "{text}");
    let document = divvy("assign --workers 2 --partitions 0 --json").json();
    assert_eq!(
        document["assignments"],
        json!({"worker-0": [], "worker-1": []})
    );
}

#[test]
fn verbose_tells_on_stderr_and_leaves_the_result_alone() {
    let quiet = divvy("assign --workers 2 --partitions 8 --json").done();
    let scratch = Scratch::new();
    let partitions = scratch.file("p.csv", "key\na\n");
    let run = scratch.run([
        "assign",
        "-v",
        "--workers",
        "2",
        "--partitions",
        &partitions,
    ]);
    assert_eq!(run.stderr, "debug: read 1 partitions from p.csv\n");
    assert_eq!(
        divvy("assign -v --workers 2 --partitions 8 --json").stdout,
        quiet
    );
}

#[test]
fn nothing_invisible_is_printed_but_json_has_names_as_they_are() {
    let workers = "a\u{202e}b,\u{200f}c,d\u{2066}";
    let scratch = Scratch::new();
    let file = scratch.file("p.csv", "key\nx\u{202a}y\nz\u{61c}:1\n");
    let place = ["--workers", workers, "--partitions", &file];
    let lines: [&[&str]; 4] = [
        &["assign", "--list"],
        &["plan", "--list", "--add", "1"],
        &["explain", "x\u{202a}y"],
        &["key", "a\u{202e}b"],
    ];
    let invisible = ['\u{202e}', '\u{200f}', '\u{2066}', '\u{202a}', '\u{61c}'];
    for line in lines {
        let placed: &[&str] = if line[0] == "key" { &[] } else { &place };
        let text = scratch.run([line, placed].concat()).done();
        assert!(!text.contains(invisible), "{line:?}: {text:?}");
        assert!(text.contains("\\u{202"), "{line:?}: {text}");
    }
    let json = scratch
        .run([&["assign", "--json"][..], &place].concat())
        .done();
    assert!(json.contains("a\u{202e}b"));
}
