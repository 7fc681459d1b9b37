//! `--previous`.

use std::fs::File;

use serde_json::json;

use crate::scratch::Scratch;

/// A directory with `before.json`: 5 workers, 64 partitions.
fn with_previous() -> Scratch {
    let scratch = Scratch::new();
    let before = scratch
        .run("assign --workers 5 --partitions 64 --json".split(' '))
        .done();
    scratch.file("before.json", before);
    scratch
}

#[test]
fn moves_and_affinity_are_added() {
    let scratch = with_previous();
    let line = "assign --workers 6 --partitions 66 --previous @before.json";
    let document = scratch.run(line.split(' ').chain(["--json"])).json();
    let moves = document["moves"].as_array().expect("a list");
    let moved = moves
        .iter()
        .filter(|change| !change["from"].is_null())
        .count();
    assert!(moved > 0);
    for change in moves.iter().filter(|change| !change["from"].is_null()) {
        assert_eq!(change["to"], "worker-5", "only the new worker gains");
    }
    let new: Vec<_> = moves
        .iter()
        .filter(|change| change["from"].is_null())
        .map(|change| &change["partition"])
        .collect();
    assert_eq!(new, [&json!("default:64"), &json!("default:65")]);
    let affinity = document["affinity"].as_f64().expect("a number");
    assert_eq!(affinity, (64 - moved) as f64 / 64.0);

    let text = scratch.run(line.split(' ')).done();
    let expected = format!(
        "since the previous assignment: {moved} partitions moved, 2 new, 0 gone, affinity {affinity:.3}"
    );
    assert_eq!(text.lines().last(), Some(expected.as_str()));
}

#[test]
fn without_a_change_nothing_moves() {
    let scratch = with_previous();
    let line = "assign --workers 5 --partitions 64 --previous @before.json --json";
    let document = scratch.run(line.split(' ')).json();
    assert_eq!(
        (&document["moves"], &document["affinity"]),
        (&json!([]), &json!(1.0))
    );
}

#[test]
fn what_was_printed_with_a_previous_assignment_is_one() {
    let scratch = with_previous();
    let line = "assign --workers 6 --partitions 66 --previous @before.json --json";
    let after = scratch.run(line.split(' ')).done();
    assert!(after.contains("\"moves\""));
    scratch.file("after.json", after);
    let line = "assign --workers 6 --partitions 66 --previous @after.json --json";
    assert_eq!(scratch.run(line.split(' ')).json()["affinity"], 1.0);
}

#[test]
fn weights_zones_and_health_come_back() {
    let scratch = Scratch::new();
    scratch.file(
        "w.csv",
        "id,weight,zone,healthy\na,2,eu-1,true\nb,1,,false\nc,1,,true\n",
    );
    scratch.file("p.csv", "key,weight\nx,5\ny,1\nz,7\n");
    let line = "assign --workers @w.csv --partitions @p.csv --json";
    let before = scratch.run(line.split(' ')).done();
    scratch.file("before.json", before);
    let again = scratch
        .run(line.split(' ').chain(["--previous", "@before.json"]))
        .json();
    assert_eq!(again["affinity"], 1.0);
}

#[test]
fn explain_takes_it_too() {
    let scratch = with_previous();
    let line = "explain default:17 --workers 5 --previous @before.json";
    assert!(
        scratch
            .run(line.split(' '))
            .done()
            .starts_with("default:17 belongs to ")
    );
}

#[test]
fn what_is_not_given_is_taken_from_it() {
    let scratch = with_previous();
    let assigned = |options: &str| {
        let line = format!("assign --previous @before.json --json {options}");
        scratch.run(line.split_whitespace()).json()
    };
    let all = assigned("--workers 5 --partitions 64");
    assert_eq!(assigned(""), all);
    assert_eq!(assigned("--workers 5"), all);
    assert_eq!(assigned("--partitions 64"), all);
}

#[test]
fn the_strategies_that_plan_keep_what_may_stay() {
    let scratch = with_previous();
    for strategy in [
        "balanced",
        "weighted-consistent-hash --no-fast-path",
        "zoned",
    ] {
        let line = format!("assign --workers 6 --json --strategy {strategy}");
        let line = format!("{line} --previous @before.json");
        let document = scratch.run(line.split(' ')).json();
        let affinity = document["affinity"].as_f64().expect("a number");
        let again = "assign --workers 6 --partitions 64 --json --strategy";
        let cold = scratch.run(format!("{again} {strategy}").split(' ')).json();
        assert_ne!(document["assignments"], cold["assignments"], "{strategy}");
        assert!(affinity > 0.7, "{strategy}: {affinity}");
    }
}

#[test]
fn a_wrong_one_is_refused_in_one_line_that_names_the_file() {
    let scratch = Scratch::new();
    let cases = [
        (
            "{\"format\": 2}",
            "assignment format '2': this release reads format 1",
        ),
        ("[]", ""),
        ("nonsense", ""),
        ("", ""),
        (
            r#"{"format": 1, "assignments": {"a": ["x"], "b": ["x"]}}"#,
            "partition 'x': is given twice, to 'a' and to 'b'",
        ),
        (r#"{"format": 1, "assignments": {"a": ["x"], "a": []}}"#, ""),
        (
            r#"{"format": 1, "assignments": {"a": ["x"], "a": []}, "moves": []}"#,
            "",
        ),
        (r#"{"format": 1, "assignments": {"a": [""]}}"#, ""),
        (r#"{"format": 1, "surprise": 1, "assignments": {}}"#, ""),
    ];
    for (content, expected) in cases {
        scratch.file("before.json", content);
        let run =
            scratch.run("assign --workers 2 --partitions 4 --previous @before.json".split(' '));
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{content}");
        assert_eq!(run.stderr.lines().count(), 1, "{content}: {}", run.stderr);
        assert!(
            run.stderr.starts_with("error: --previous @before.json: "),
            "{content}: {}",
            run.stderr
        );
        assert!(run.stderr.contains(expected), "{content}: {}", run.stderr);
    }
}

#[test]
fn it_may_be_larger_than_a_list() {
    let scratch = Scratch::new();
    // A hole: it takes no room on the disk, and is refused before it is read.
    let file = File::create(scratch.path("before.json")).expect("a file for the test");
    file.set_len((4 << 30) + 1).expect("a size for the file");
    let run = scratch.run(["assign", "--previous", "@before.json"]);
    let told = "--previous @before.json: has 4294967297 bytes, at most 4294967296 are read\n";
    run.refused(1, told);
}

#[test]
fn a_plan_by_another_strategy_than_made_it_is_warned_about() {
    let scratch = with_previous();
    let planned = |strategy: &str| {
        let line = format!("plan --previous @before.json --add 1 --strategy {strategy}");
        scratch.run(line.split(' '))
    };
    let run = planned("balanced");
    assert_eq!(run.code, 0);
    assert_eq!(
        run.stderr,
        "warning: --previous was made by the strategy rendezvous, this plan is by balanced: \
         what moves may be due to that\n"
    );
    planned("rendezvous").done();
    // Another way to the same placement.
    planned("rendezvous-parallel").done();
    scratch.file(
        "before.json",
        r#"{"format": 1, "assignments": {"a": ["x"]}}"#,
    );
    planned("balanced").done();
}
