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

/// Three zones of two workers each.
fn three_zones() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("w.csv", "id,zone\nn1,a\nn2,a\nn3,b\nn4,b\nn5,c\nn6,c\n");
    let rows: String = (0..30)
        .map(|number| format!("p:{number},{}\n", 10 + number % 7))
        .collect();
    scratch.file("p.csv", format!("key,weight\n{rows}"));
    scratch
}

fn zoned(scratch: &Scratch, options: &str) -> crate::scratch::Run {
    let line = format!("plan --strategy zoned --workers @w.csv --partitions @p.csv {options}");
    scratch.run(line.split_whitespace())
}

/// The zones of the workers that a plan adds to the six of [`three_zones`].
fn zones_added(scratch: &Scratch, options: &str) -> String {
    let after = after(&zoned(scratch, &format!("{options} --json")).json());
    let added = after.into_iter().filter(|(id, _)| id.as_str() > "n6");
    let zones = added.map(|(_, zone)| zone.unwrap_or_else(|| "-".to_owned()));
    zones.collect::<Vec<_>>().join(" ")
}

#[test]
fn no_worker_is_added_to_a_zone_that_is_removed() {
    let scratch = three_zones();
    assert_eq!(zones_added(&scratch, "--remove zone:b --add 3"), "a c a");
    assert_eq!(
        zones_added(&scratch, "--remove zone:a,zone:b --add 2"),
        "c c"
    );
    let fitted = zones_added(&scratch, "--remove zone:b --fit 75");
    assert!(!fitted.is_empty() && !fitted.contains('b'), "{fitted}");
    let text = zoned(&scratch, "--remove zone:b --add 3").done();
    assert!(
        text.contains("\nadded n7 in zone a, n8 in zone c, n9 in zone a: "),
        "{text}"
    );
    // The last worker of a zone that is not removed may be replaced there.
    assert_eq!(zones_added(&scratch, "--remove n3,n4 --add 2"), "b b");
}

#[test]
fn added_workers_go_in_turn_to_the_zones_that_are_named() {
    let scratch = three_zones();
    assert_eq!(zones_added(&scratch, "--add 3@a,c"), "a c a");
    assert_eq!(zones_added(&scratch, "--add 3@c,a"), "c a c");
    assert_eq!(zones_added(&scratch, "--add 2=1.5@b"), "b b");
    assert_eq!(zones_added(&scratch, "--add 0@b"), "");
    let text = zoned(&scratch, "--add 2=1.5@b").done();
    assert!(
        text.contains("n8 in zone b: each of weight 1.5\n"),
        "{text}"
    );
    let fitted = zones_added(&scratch, "--remove zone:b --fit 75@c");
    assert!(!fitted.is_empty(), "somebody is added");
    assert!(fitted.split(' ').all(|zone| zone == "c"), "{fitted}");
}

#[test]
fn a_zone_that_nobody_can_be_added_to_is_refused_with_its_name() {
    let scratch = three_zones();
    for (options, message) in [
        (
            "--add 3@a,europe",
            "zone to add to 'europe': has none of the 6 workers\n",
        ),
        (
            "--add 3@A",
            "zone to add to 'A': has none of the 6 workers; did you mean a?\n",
        ),
        (
            "--remove zone:b --add 3@b,c",
            "zone to add to 'b': is removed by --remove zone:b\n",
        ),
        (
            "--remove zone:b --fit 75@b",
            "zone to add to 'b': is removed by --remove zone:b\n",
        ),
        (
            "--fit 75@d4",
            "zone to add to 'd4': has none of the 6 workers\n",
        ),
        (
            "--add 3@",
            "zone to add to '': must be the name of a zone: --add 3@a,c adds to zones a and c in \
             turn\n",
        ),
        ("--add 3@a,,c", "zone to add to '': must be the name"),
        ("--add 3@a,c,a", "zone to add to 'a': is given twice\n"),
        (
            "--add @a",
            "workers to add '@a': must be a whole number in 0..=99994, or such as 2=1.5 with a \
             weight, or 2@a,c with zones\n",
        ),
        ("--add 1=x@a", "worker weight 'x': must be a number"),
        (
            "--fit x@a",
            "load 'x': must be a whole number of at least 1\n",
        ),
        (
            "--remove zone:a,zone:b,zone:c --add 1",
            "workers to add '1': need a zone, and --remove names all there are",
        ),
    ] {
        zoned(&scratch, options).refused(2, message);
    }
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
