//! Runs the program on small sizes: whether it runs and what its output looks like, not how fast it is.

use std::process::Command;

use serde_json::Value;

fn divvy_bench(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_divvy-bench"))
        .args(args)
        .output()
        .expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("output is text")
}

fn rows(args: &[&str]) -> Vec<Value> {
    let text = divvy_bench(args);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
}

#[test]
fn peers_are_rows_of_json() {
    let rows = rows(&["peers", "--quick", "--json"]);
    for row in &rows {
        let number = |field: &str| {
            row[field]
                .as_f64()
                .unwrap_or_else(|| panic!("{field}: {row}"))
        };
        assert!(row["job"].is_string() && row["peer"].is_string(), "{row}");
        let ratio = number("peer_ns") / number("divvy_ns");
        assert!((number("ratio") / ratio - 1.0).abs() < 1e-6, "{row}");
    }
    let peers = [
        "anchorhash",
        "consistent_hash",
        "cruster",
        "full run",
        "hash-rings carp",
        "hash-rings rendezvous",
        "hash-rings weighted",
        "hashring",
        "hrw",
        "hrw-hash",
        "jumphash",
        "maglev",
        "pingora-ketama",
        "plain f64 loop",
        "rendezvous_hash",
    ];
    for peer in peers {
        assert!(
            rows.iter().any(|row| row["peer"] == peer),
            "{peer} is missing"
        );
    }
}

#[test]
fn heap_is_counted() {
    let rows = rows(&["peers", "--quick", "--json", "--only", "ring memory"]);
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!(row["unit"], "bytes");
        // At least 4 bytes for each of 20 workers' 150 points.
        assert!(row["divvy_ns"].as_f64() >= Some(12_000.0), "{row}");
    }
}

#[test]
fn only_what_was_asked_for_runs() {
    let text = divvy_bench(&["peers", "--quick", "--only", "256x10 hrw", "--rounds", "2"]);
    assert!(text.starts_with("Whole assignment\n"), "{text}");
    assert!(
        text.contains("hrw + foldhash") && !text.contains("carp"),
        "{text}"
    );
}

#[test]
fn plans_are_timed() {
    let rows = rows(&["plan", "--quick", "--json"]);
    assert!(rows.iter().all(|row| row["value"].as_f64() > Some(0.0)));
    assert!(rows.iter().any(|row| row["way"] == "propose"));
}

#[test]
fn parallel_is_measured() {
    let rows = rows(&["parallel", "--quick", "--json"]);
    assert!(rows.iter().all(|row| row["ratio"].as_f64() > Some(0.0)));
}

#[test]
fn scale_is_drawn() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("scale.svg");
    let path = path.to_str().expect("the path is text");
    let rows = rows(&["scale", "--quick", "--json", "--plot", path]);
    assert!(rows.iter().all(|curve| curve["exponent"].is_number()));
    let picture = std::fs::read_to_string(path).expect("the picture is there");
    assert_eq!(picture.matches("<polyline").count(), rows.len());
}

#[test]
fn a_job_runs_once() {
    assert_eq!(divvy_bench(&["once", "rendezvous 64x4"]), "");
    let output = Command::new(env!("CARGO_BIN_EXE_divvy-bench"))
        .args(["once", "divination 64x4"])
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("these are: balanced"), "{errors}");
}
