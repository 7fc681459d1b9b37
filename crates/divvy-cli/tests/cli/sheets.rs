//! Files as a spreadsheet or another system writes them, and what is said of
//! those that do not go together.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::scratch::{Run, Scratch};

const NODES: &str = "id,weight,zone\nn1,8000,a\nn2,8000,a\nn3,8000,b\nn4,8000,b\n";

/// A directory with 4 nodes and 12 weighted partitions.
fn sheets() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("nodes.csv", NODES);
    let rows: String = (0..12)
        .map(|number| format!("p:{number},{}\n", 10 + number))
        .collect();
    scratch.file("parts.csv", format!("key,weight\n{rows}"));
    scratch
}

fn run(scratch: &Scratch, line: &str) -> Run {
    scratch.run(line.split_whitespace())
}

fn zoned(scratch: &Scratch, parts: &str) -> Run {
    let line = "assign --workers @nodes.csv --strategy zoned --json --partitions";
    run(scratch, &format!("{line} {parts}"))
}

#[test]
fn headers_may_be_those_of_others_and_tabs_separate_too() {
    let scratch = sheets();
    let plain = zoned(&scratch, "@parts.csv").json();
    scratch.file(
        "nodes.csv",
        "Node;Capacity;Zone\nn1;8000;a\nn2;8000;a\nn3;8000;b\nn4;8000;b\n",
    );
    let rows: String = (0..12)
        .map(|number| format!("p:{number}\t{}\n", 10 + number))
        .collect();
    scratch.file("parts.tsv", format!("partition\tweight\n{rows}"));
    assert_eq!(zoned(&scratch, "@parts.tsv").json(), plain);
}

#[test]
fn columns_that_are_not_known_are_left_out_with_a_warning() {
    let scratch = sheets();
    scratch.file("parts.csv", "key,wieght,region\np:0,5,eu\np:1,7,us\n");
    zoned(&scratch, "@parts.csv").warned(
        "warning: --partitions @parts.csv: unknown columns left out: 'wieght' (did you mean \
         weight?), 'region'\n",
    );
}

#[test]
fn weights_of_partitions_are_whole_and_say_so() {
    let scratch = sheets();
    for (weight, rule) in [
        (
            "4.99",
            "weights of partitions are whole numbers: multiply all of them",
        ),
        ("\"4,99\"", "has a comma: write a point"),
        ("1.000", "could be 1 or 1000"),
    ] {
        scratch.file("parts.csv", format!("key,weight\np:0,{weight}\n"));
        let shown = weight.trim_matches('"');
        let told = format!("--partitions @parts.csv: line 2: weight '{shown}': {rule}");
        zoned(&scratch, "@parts.csv").refused(1, &told);
    }
    scratch.file("parts.csv", "key,weight\np:0,10.0\np:1,1e6\n");
    let read = zoned(&scratch, "@parts.csv").json();
    assert_eq!(
        read["partition_weights"],
        json!({"p:0": 10, "p:1": 1_000_000})
    );
}

#[test]
fn what_is_missing_or_given_twice_is_told() {
    let scratch = sheets();
    scratch.file("parts.csv", "key,weight\n");
    zoned(&scratch, "@parts.csv").warned("warning: --partitions @parts.csv: no partitions\n");
    scratch.file("parts.csv", "key,weight\np:0,5\np:1,\np:2,0\n");
    zoned(&scratch, "@parts.csv")
        .warned("warning: 2 of 3 partitions have no weight or 0: each counts as 1\n");
    scratch.file("parts.csv", "key,weight\np:0,5\np:1,6\np:0,7\n");
    zoned(&scratch, "@parts.csv").refused(
        1,
        "--partitions @parts.csv: line 4: partition 'p:0': is given twice, first in line 2\n",
    );
    scratch.file("today.csv", "partition,owner\np:0,n1\np:0,n2\n");
    run(&scratch, "assign --previous @today.csv").refused(
        1,
        "--previous @today.csv: line 3: partition 'p:0': is given twice, first in line 2 to 'n1', \
         here to 'n2'\n",
    );
}

#[test]
fn a_list_may_come_from_stdin() {
    let scratch = sheets();
    let named = zoned(&scratch, "@parts.csv").json();
    let content = std::fs::read(scratch.path("parts.csv")).expect("the file above");
    for stdin in ["-", "@-", "@/dev/stdin"] {
        let line = "assign --workers @nodes.csv --strategy zoned --json --partitions";
        let mut command = scratch.command();
        command
            .args(line.split(' ').chain([stdin]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be started");
        let mut pipe = child.stdin.take().expect("stdin is a pipe");
        pipe.write_all(&content).expect("somebody reads");
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        let read: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{stdin}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(read, named, "{stdin}");
    }
}

#[test]
fn names_that_do_not_match_are_warned_about_with_one_of_each_side() {
    let scratch = sheets();
    scratch.file("today.csv", "key,worker\np-0,n1\np-1,n2\np:2,n3\n");
    run(
        &scratch,
        "assign --strategy zoned --previous @today.csv --partitions @parts.csv",
    )
    .warned(
        "warning: 2 of the 3 partitions of --previous are not among --partitions, such as 'p-0' \
         there and 'p:0' here",
    );
    scratch.file("today.csv", "key,worker\np:0,N1\np:1,N2\np:2,n3\n");
    run(
        &scratch,
        "assign --strategy zoned --previous @today.csv --workers @nodes.csv",
    )
    .warned(
        "warning: 2 of the 3 workers of --previous are not among --workers, such as 'N1' there \
         and 'n1' here",
    );
    // Fewer of the same are no other names.
    scratch.file("today.csv", "key,worker\np:0,n1\np:1,n2\np:2,n3\n");
    run(
        &scratch,
        "assign --strategy zoned --previous @today.csv --workers n1",
    )
    .done();
}

#[test]
fn workers_of_an_imported_map_are_weighed_as_they_are_known() {
    let scratch = Scratch::new();
    scratch.file("nodes.csv", "id,weight,zone\nbig,3,a\nsmall,1,b\n");
    scratch.file(
        "today.json",
        r#"{"big": ["p:0", "p:1", "p:2"], "small": ["p:3"]}"#,
    );
    let line = "plan --strategy balanced --previous @today.json --json";
    for known in ["--workers @nodes.csv", "--to @nodes.csv"] {
        let document = run(&scratch, &format!("{line} {known}")).json();
        assert_eq!(document["before"]["max_over_mean"], 1.0, "{known}");
        assert_eq!(document["before"]["workers"][0]["zone"], "a", "{known}");
    }
    assert_eq!(run(&scratch, line).json()["before"]["max_over_mean"], 1.5);
    // What the file tells itself counts before.
    scratch.file(
        "today.json",
        r#"{"format": 1, "workers": [{"id": "big", "weight": 2}],
            "assignments": {"big": ["p:0", "p:1"], "small": ["p:2"]}}"#,
    );
    let document = run(&scratch, &format!("{line} --workers @nodes.csv")).json();
    assert_eq!(document["before"]["workers"][0]["weight"], 2.0);
}

#[test]
fn one_note_says_what_the_strategy_does_not_look_at() {
    let scratch = sheets();
    scratch.file("today.csv", "key,worker\np:0,n1\np:1,n2\n");
    let noted = |strategy: &str, rest: &str| {
        let line = format!("assign --workers @nodes.csv --strategy {strategy} {rest}");
        let run = run(&scratch, &line);
        assert_eq!(run.code, 0, "{line}");
        run.stderr
    };
    assert_eq!(
        noted(
            "rendezvous",
            "--previous @today.csv --partitions @parts.csv"
        ),
        "note: rendezvous looks at neither partition weights nor zones nor --previous; \
         --strategy zoned does\n"
    );
    assert_eq!(
        noted("weighted-consistent-hash", "--partitions @parts.csv"),
        "note: weighted-consistent-hash does not look at zones; --strategy zoned does\n"
    );
    assert_eq!(noted("zoned", "--partitions @parts.csv"), "");
    scratch.file("nodes.csv", "id,max_partitions\na,40\nb,40\n");
    assert_eq!(
        noted("consistent-hash", "--partitions 12"),
        "note: consistent-hash does not look at max_partitions; --strategy zoned does\n"
    );
    assert_eq!(noted("balanced", "--partitions 12"), "");
}

#[test]
fn owners_and_moves_come_as_csv_too() {
    let scratch = sheets();
    let line = "--strategy zoned --workers @nodes.csv --partitions @parts.csv";
    let owners = run(&scratch, &format!("assign --csv {line}")).done();
    assert!(owners.starts_with("key,worker,weight\np:0,n"), "{owners}");
    assert_eq!(owners.lines().count(), 13);
    scratch.file("today.csv", owners);
    let again = run(
        &scratch,
        &format!("plan --previous @today.csv --json {line}"),
    );
    assert_eq!(again.json()["moves"], 0);

    let moves = run(&scratch, &format!("plan --csv --remove n4 {line}")).done();
    let mut lines = moves.lines();
    assert_eq!(lines.next(), Some("partition,from,to,cause,weight"));
    let row: Vec<&str> = lines.next().expect("a move").split(',').collect();
    assert_eq!((row[1], row[3]), ("n4", "worker gone"), "{moves}");
    let json = run(&scratch, &format!("plan --json --remove n4 {line}")).json();
    assert_eq!(json["moves"], moves.lines().count() - 1);
    let both = run(&scratch, &format!("plan --csv --json --remove n4 {line}"));
    assert_eq!(both.code, 2, "one form at a time");
}
