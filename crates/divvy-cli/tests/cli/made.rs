//! The strategy and the options that made `--previous`, which are taken again.

use serde_json::json;

use crate::scratch::{Run, Scratch};

/// A directory with `before.json`, made with these options.
fn made(options: &str) -> Scratch {
    let scratch = Scratch::new();
    let line = format!("assign --workers 5 --partitions 64 --json {options}");
    let before = scratch.run(line.split_whitespace()).done();
    scratch.file("before.json", before);
    scratch
}

fn run(scratch: &Scratch, line: &str) -> Run {
    scratch.run(line.split_whitespace())
}

const MADE: [(&str, &str); 6] = [
    ("--strategy balanced --seed 7", r#"{"seed":7}"#),
    (
        "--strategy weighted-consistent-hash --no-fast-path --band 0.5 --virtual-nodes 40",
        r#"{"fast_path":false,"overload_threshold":1.5,"virtual_nodes":40}"#,
    ),
    (
        "--strategy zoned --extreme 3 --default-weight 5",
        r#"{"default_weight":5,"extreme_threshold":3.0}"#,
    ),
    (
        "--scheme rendezgo --cluster c",
        r#"{"cluster":"c","scheme":"rendezgo"}"#,
    ),
    ("--scheme native --seed 0", "null"),
    ("--strategy round-robin", "null"),
];

#[test]
fn what_made_an_assignment_is_taken_again_with_its_options() {
    for (options, written) in MADE {
        let scratch = made(options);
        let text = std::fs::read_to_string(scratch.path("before.json")).expect("the file above");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["options"].to_string(), written, "{options}");
        let assigned = run(&scratch, "assign --previous @before.json --json").json();
        assert_eq!(assigned["strategy"], document["strategy"], "{options}");
        assert_eq!(assigned["options"], document["options"], "{options}");
        assert_eq!(assigned["affinity"], 1.0, "{options}");

        let planned = run(&scratch, "plan --previous @before.json --add 1 --json").json();
        assert_eq!(planned["options"], document["options"], "{options}");
        scratch.file("plan.json", planned.to_string());
        let again = run(&scratch, "plan --previous @plan.json --json").json();
        assert_eq!(again["moves"], 0, "{options}");
        assert_eq!(again["strategy"], document["strategy"], "{options}");
        let explained = run(&scratch, "explain default:3 --previous @before.json --json").json();
        assert_eq!(explained["owner"], explained["today"], "{options}");
    }
}

#[test]
fn what_is_typed_counts_before_what_made_it_and_the_difference_is_told() {
    let scratch = made("--strategy balanced --seed 7");
    run(&scratch, "assign --previous @before.json --seed 7").done();
    let told = "warning: --previous was made with --seed 7, this is with 8: what moves may be due \
                to that\n";
    for command in ["assign", "plan --add 1", "explain default:3"] {
        let line = format!("{command} --previous @before.json --seed 8");
        run(&scratch, &line).warned(told);
    }
    // Another strategy has options of its own.
    let line = "assign --previous @before.json --strategy zoned --json";
    assert_eq!(run(&scratch, line).json()["options"], json!(null));

    let scratch = made("--strategy zoned");
    let told = "warning: --previous was made with --band 0.3, this is with 0.5";
    run(&scratch, "assign --previous @before.json --band 0.5").warned(told);
    let scratch = made("--scheme rendezgo --cluster c");
    let told = "warning: --previous was made with --scheme rendezgo, this is with native";
    run(&scratch, "assign --previous @before.json --scheme native").warned(told);
}

#[test]
fn an_option_that_nobody_knows_is_refused() {
    let scratch = Scratch::new();
    scratch.file(
        "before.json",
        r#"{"format": 1, "strategy": "zoned", "options": {"bend": 1}, "assignments": {"a": ["x"]}}"#,
    );
    let told = "--previous @before.json: assignment JSON: unknown field `bend`";
    run(&scratch, "assign --previous @before.json").refused(1, told);
}

#[test]
fn explain_says_where_a_partition_is_today() {
    let scratch = Scratch::new();
    scratch.file("today.csv", "key,worker\np:0,a\np:1,a\np:2,a\np:3,b\n");
    let explained = |number: usize| {
        let line = format!("explain p:{number} --strategy balanced --previous @today.csv");
        let text = run(&scratch, &line).done();
        let json = run(&scratch, &format!("{line} --json")).json();
        (text, json)
    };
    let (mut moved, mut stayed) = (0, 0);
    for number in 0..4 {
        let (text, json) = explained(number);
        if json["today"] == json["owner"] {
            stayed += 1;
            assert!(
                text.starts_with(&format!("p:{number} belongs to ")),
                "{text}"
            );
        } else {
            moved += 1;
            let told = format!("p:{number}: today it is on a; balanced would put it on b");
            assert!(text.starts_with(&told), "{text}");
            assert!(text.contains("It moves from a to b: "), "{text}");
        }
    }
    assert_eq!((moved, stayed), (1, 3));
}
