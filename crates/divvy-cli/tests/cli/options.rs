//! The options of strategies, on every command that places.

use serde_json::Value;

use crate::scratch::{Scratch, divvy};

/// Partitions of weights 1 to 97, finer than any band.
fn weighted() -> Scratch {
    let scratch = Scratch::new();
    let rows: String = (0..600)
        .map(|number| format!("p:{number},{}\n", 1 + number * 37 % 97))
        .collect();
    scratch.file("p.csv", format!("key,weight\n{rows}"));
    scratch
}

fn ratio(document: &Value, field: &str) -> f64 {
    document["balance"][field].as_f64().expect("a number")
}

#[test]
fn the_band_holds_loads_on_both_sides() {
    let scratch = weighted();
    for strategy in ["weighted-consistent-hash", "zoned"] {
        for band in [0.15, 0.3, 0.5] {
            let line = format!(
                "assign --workers 20 --partitions @p.csv --json --strategy {strategy} --band {band}"
            );
            let document = scratch.run(line.split(' ')).json();
            assert!(ratio(&document, "max_over_mean") <= 1.0 + band, "{line}");
            assert!(ratio(&document, "min_over_mean") >= 1.0 - band, "{line}");
        }
    }
    let placed = |options: &str| {
        let line = "assign --workers 20 --partitions @p.csv --json --strategy";
        let line = format!("{line} weighted-consistent-hash {options}");
        scratch.run(line.split_whitespace()).json()
    };
    assert_eq!(placed(""), placed("--band 0.3 --extreme 2"));
    for other in ["--band 0.15", "--extreme 1.5"] {
        let same = placed("")["assignments"] == placed(other)["assignments"];
        assert!(!same, "{other} changes nothing");
    }
}

#[test]
fn what_is_out_of_bounds_is_corrected_with_one_warning_that_names_the_flag() {
    let cases = [
        (
            "--band 0.1",
            "--band 0.15",
            "--band 0.1 is below 0.15, using 0.15",
        ),
        (
            "--band 0",
            "--band 0.15",
            "--band 0 is below 0.15, using 0.15",
        ),
        (
            "--band 150",
            "--band 99",
            "--band 150 is above 99, using 99",
        ),
        (
            "--extreme 1",
            "--extreme 1.5",
            "--extreme 1 is below 1.5, using 1.5",
        ),
    ];
    let scratch = weighted();
    let line = "--workers 3 --partitions @p.csv --strategy weighted-consistent-hash";
    for (given, used, warning) in cases {
        for command in ["assign", "plan --add 1", "explain p:1"] {
            let run = |option| scratch.run(format!("{command} {line} {option}").split(' '));
            let corrected = run(given);
            assert_eq!(corrected.code, 0, "{command} {given}");
            assert_eq!(corrected.stderr, format!("warning: {warning}\n"));
            assert_eq!(corrected.stdout, run(used).done(), "{command} {given}");
        }
    }
    divvy("assign --workers 3 --partitions 5 --strategy balanced --band 0.1")
        .refused(2, "option '--band': is not one of strategy balanced\n");
}

#[test]
fn the_default_weight_is_what_weightless_partitions_count_for() {
    let scratch = Scratch::new();
    scratch.file("p.csv", "key,weight\na,5\nb,\nc,0\n");
    let line = "assign --workers 1 --partitions @p.csv --json --strategy zoned";
    let load = |options: &str| {
        let line = format!("{line} {options}");
        scratch.run(line.split_whitespace()).json()["workers"][0]["load"].clone()
    };
    let told = "warning: 2 of 3 partitions have no weight or 0: each counts as 1\n";
    let usual = scratch.run(line.split(' ')).warned(told);
    assert!(usual.contains("\"load\": 7"), "{usual}");
    // Who says what they count for knows of them.
    assert_eq!(load("--default-weight 100"), 205);
}

#[test]
fn without_the_fast_path_equal_weights_are_inside_the_band_too() {
    let line = "assign --workers 100 --partitions 3000 --json --strategy";
    let ring = divvy(&format!("{line} consistent-hash")).json();
    let fast = divvy(&format!("{line} weighted-consistent-hash")).json();
    assert_eq!(fast["assignments"], ring["assignments"]);
    assert!(ratio(&fast, "max_over_mean") > 1.3);
    let held = divvy(&format!("{line} weighted-consistent-hash --no-fast-path")).json();
    assert!(ratio(&held, "max_over_mean") <= 1.3);
    assert!(ratio(&held, "min_over_mean") >= 0.7);
}

#[test]
fn an_option_of_another_strategy_is_named_by_its_flag() {
    let cases = [
        ("--band", "--band 0.3", "balanced"),
        ("--extreme", "--extreme 2", "consistent-hash"),
        ("--default-weight", "--default-weight 5", "rendezvous"),
        ("--no-fast-path", "--no-fast-path", "zoned"),
        ("--virtual-nodes", "--virtual-nodes 5", "balanced"),
        ("--seed", "--seed 5", "round-robin"),
        ("--scheme", "--scheme cruster", "zoned"),
    ];
    for (flag, given, strategy) in cases {
        for command in ["assign", "plan --add 1", "explain default:1"] {
            let line = format!("{command} --workers 3 --partitions 5 --strategy {strategy}");
            let message = format!("option '{flag}': is not one of strategy {strategy}\n");
            divvy(&format!("{line} {given}")).refused(2, &message);
        }
    }
}

#[test]
fn what_is_no_number_or_below_zero_is_refused_with_the_bound() {
    let cases = [
        ("band", "--band", "must be a number in 0.15..=99"),
        (
            "extreme threshold",
            "--extreme",
            "must be a number of at least 1.5",
        ),
        (
            "default weight",
            "--default-weight",
            "must be a whole number in 1..=9223372036854775807",
        ),
    ];
    for (field, flag, rule) in cases {
        for value in ["NaN", "inf", "-1", "x", "1e999"] {
            let line = format!("assign --workers 3 --partitions 5 --strategy zoned {flag} {value}");
            divvy(&line).refused(2, &format!("{field} '{value}': {rule}\n"));
        }
    }
    for flag in ["--band", "--extreme"] {
        let line = format!("assign --workers 3 --partitions 5 --strategy zoned {flag} -inf");
        assert!(divvy(&line).stderr.contains("'-inf': must be a number"));
    }
    let line = "assign --workers 3 --partitions 5 --strategy zoned --default-weight 1.5";
    divvy(line).refused(2, "default weight '1.5': must be a whole number");
}
