//! `--to`, `--add` and `--remove`: the workers that there will be.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::scratch::{Scratch, divvy};

/// The ids after a plan, with their zones.
fn after(document: &Value) -> BTreeMap<String, Option<String>> {
    let workers = document["after"]["workers"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    workers
        .iter()
        .map(|worker| (text(&worker["id"]).expect("an id"), text(&worker["zone"])))
        .collect()
}

fn ids(line: &str) -> Vec<String> {
    after(&divvy(&format!("plan --partitions 40 --json {line}")).json())
        .into_keys()
        .collect()
}

#[test]
fn added_workers_go_on_after_the_highest_number() {
    let ids_of_12: Vec<String> = ids("--workers 10 --add 2");
    assert_eq!(ids_of_12.len(), 12);
    assert!(ids_of_12.contains(&"worker-11".to_owned()));
    assert_eq!(
        ids("--workers a,b --add 2"),
        ["a", "b", "worker-0", "worker-1"]
    );
    assert_eq!(
        ids("--workers pod-7,pod-3,x-9 --add 1"),
        ["pod-3", "pod-7", "pod-8", "x-9"]
    );
    assert_eq!(ids("--workers 2 --add 0"), ["worker-0", "worker-1"]);
}

#[test]
fn a_new_worker_is_not_taken_for_one_that_leaves() {
    assert_eq!(
        ids("--workers 3 --remove worker-2 --add 1"),
        ["worker-0", "worker-1", "worker-3"]
    );
}

#[test]
fn to_has_the_forms_of_workers() {
    assert_eq!(ids("--workers 3 --to 1"), ["worker-0"]);
    assert_eq!(ids("--workers 3 --to a=2,b"), ["a", "b"]);
    let scratch = Scratch::new();
    let to = scratch.file("to.csv", "id,zone\nx,eu\ny,us\n");
    let line = ["plan", "--partitions", "9", "--workers", "2", "--to", &to];
    let document = scratch.run(line.into_iter().chain(["--json"])).json();
    assert_eq!(after(&document).into_keys().collect::<Vec<_>>(), ["x", "y"]);
}

#[test]
fn added_workers_go_to_the_zones_with_the_fewest() {
    let scratch = Scratch::new();
    scratch.file("w.csv", "id,zone\nw-0,b\nw-1,b\nw-2,a\nw-3,c\nw-4,c\n");
    let zones = |options: &str| {
        let line = format!("plan --workers @w.csv --partitions 60 --json {options}");
        after(&scratch.run(line.split_whitespace()).json())
    };
    let zone = |zone: &str| Some(zone.to_owned());
    let three = zones("--add 3");
    assert_eq!(three["w-5"], zone("a"));
    assert_eq!(three["w-6"], zone("a"));
    assert_eq!(three["w-7"], zone("b"));
    // A zone that loses its last worker is refilled first.
    let refilled = zones("--remove w-2,w-3 --add 2");
    assert_eq!(refilled["w-5"], zone("a"));
    assert_eq!(refilled["w-6"], zone("a"));

    scratch.file("w.csv", "id,zone\nw-0,b\nw-1,\n");
    assert_eq!(zones("--add 1")["w-2"], None);
}

/// What the one line says after `error: `, and the words typed.
const MISTAKES: [(&str, &str); 16] = [
    (
        "--workers is missing: give a count, ids such as a,b=2, or @FILE, or --previous",
        "",
    ),
    ("--workers is missing: give", "--to 4 --partitions 5"),
    ("--partitions is missing: give", "--workers 3 --add 1"),
    (
        "nothing to plan: give --to, --add or --remove, or --previous",
        "--workers 3 --partitions 5",
    ),
    (
        "option '--to': names all workers, so it goes without --add and --remove",
        "--workers 3 --partitions 5 --to 4 --add 1",
    ),
    (
        "option '--to': names all workers",
        "--workers 3 --partitions 5 --to 4 --remove worker-1",
    ),
    (
        "workers to add '-1': must be a whole number in 0..=99997",
        "--workers 3 --partitions 5 --add -1",
    ),
    (
        "workers to add '99998': must be a whole number in 0..=99997",
        "--workers 3 --partitions 5 --add 99998",
    ),
    (
        "workers to add 'two': must be a whole number in 0..=99997, or such as 2=1.5",
        "--workers 3 --partitions 5 --add two",
    ),
    (
        "workers to add 'NaN': must be a whole number in 0..=99997",
        "--workers 3 --partitions 5 --add NaN",
    ),
    (
        "worker to remove 'worker-3': is not among the 3 workers",
        "--workers 3 --partitions 5 --remove worker-3",
    ),
    (
        "worker to remove 'worker-1': is given twice",
        "--workers 3 --partitions 5 --remove worker-1,worker-1",
    ),
    (
        "worker to remove '': must be ids such as",
        "--workers 3 --partitions 5 --remove worker-1,,worker-2",
    ),
    (
        "worker count '-4': must be a whole number in 0..=100000",
        "--workers 3 --partitions 5 --to -4",
    ),
    (
        "worker id 'a': is given twice",
        "--workers 3 --partitions 5 --to a,a",
    ),
    (
        "plot 'change.png': the name must end in .svg",
        "--workers 3 --partitions 5 --add 1 --plot change.png",
    ),
];

#[test]
fn each_mistake_has_one_line_that_names_field_value_and_bound() {
    for (message, line) in MISTAKES {
        divvy(&format!("plan {line}")).refused(2, message);
    }
}

#[test]
fn what_cannot_be_done_has_one_line_too() {
    let cases = [
        (
            "no workers: at least 1 is needed, 0 were given",
            "--workers 2 --partitions 5 --remove worker-0,worker-1",
        ),
        (
            "no workers: at least 1 is needed, 0 were given",
            "--workers 0 --partitions 5 --add 1",
        ),
        (
            "--to @missing.csv: No such file",
            "--workers 2 --to @missing.csv",
        ),
        (
            "--previous @missing.json: No such file",
            "--previous @missing.json",
        ),
        (
            "plot '/nowhere/change.svg': No such file or directory",
            "--workers 3 --partitions 5 --add 1 --json --plot /nowhere/change.svg",
        ),
    ];
    for (message, line) in cases {
        divvy(&format!("plan {line}")).refused(1, message);
    }
}

#[test]
fn workers_that_play_no_part_are_warned_about() {
    let scratch = Scratch::new();
    let before = divvy("assign --workers 3 --partitions 12 --json").done();
    scratch.file("before.json", before);
    let run = scratch.run("plan --workers 9 --previous @before.json --to 4".split(' '));
    assert_eq!(run.code, 0);
    assert!(run.stderr.starts_with("warning: --workers is not used"));
    assert!(
        run.stdout
            .contains("\nrendezvous: 12 partitions, 3 workers -> 4,"),
        "{}",
        run.stdout
    );
}
