//! `divvy playground`: scenarios without a page, and the page until a signal.

use std::net::TcpListener;

use divvy_testbed::PlaygroundProcess;
use rustix::process::Signal;

use crate::scratch::{Scratch, divvy};

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
fn a_built_in_scenario_reaches_its_goal_without_a_page() {
    let line = "playground --scenario half-the-fleet-dies --headless --json";
    let outcome = divvy(line).json();
    assert_eq!(outcome["scenario"], "half-the-fleet-dies");
    assert_eq!(outcome["passed"], true);
    assert_eq!(outcome["violations"], 0);
    assert_eq!(outcome["seed"], 7);
    assert!(outcome["lasted_ms"].is_u64() && outcome["goal"].is_string());
    for number in outcome["numbers"].as_array().expect("numbers") {
        assert_eq!(number["met"], true, "{number}");
        assert!(number["measured"].is_number() && number["bound"].is_number());
    }
    assert_eq!(
        divvy(line).json(),
        outcome,
        "the same seed, the same outcome"
    );
    let table = divvy("playground --scenario half-the-fleet-dies --headless").done();
    assert!(table.contains("longest_unowned_ms"), "{table}");
    assert!(table.ends_with("invariants broken: 0\n"), "{table}");
}

#[test]
fn a_scenario_from_a_file_that_misses_its_goal_exits_with_1() {
    let scratch = Scratch::new();
    scratch.file("impossible.yaml", IMPOSSIBLE);
    let run = scratch.run("playground --scenario impossible.yaml --headless --json".split(' '));
    assert_eq!(run.code, 1);
    assert_eq!(
        run.stderr,
        "error: impossible missed its goal: most_unowned\n"
    );
    assert!(run.stdout.contains("\"passed\": false"), "{}", run.stdout);
}

#[test]
fn scenarios_are_listed() {
    let list = divvy("playground --list --json").json();
    let scenarios = list["scenarios"].as_array().expect("a list");
    assert!(scenarios.len() >= 20);
    let table = divvy("playground --list").done();
    for scenario in scenarios {
        assert!(table.contains(scenario["name"].as_str().expect("a name")));
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_opened() {
    divvy("playground --workers 501")
        .refused(2, "workers '501': must be a whole number in 1..=500");
    divvy("playground --partitions 0")
        .refused(2, "partitions '0': must be a whole number in 1..=20000");
    divvy("playground --preset hasty").refused(2, "preset 'hasty': must be one of fast,");
    divvy("playground --mode lease --strategy zoned").refused(2, "strategy 'zoned'");
    divvy("playground --mode lease --overlap").refused(2, "--overlap is for leader mode");
    let known = "balanced, weighted-consistent-hash, zoned, rendezvous";
    let unknown = format!("strategy 'filtered-rendezvous': must be one of {known}");
    divvy("playground --strategy filtered-rendezvous").refused(2, &unknown);
    divvy("playground --json").refused(2, "--json goes with");
    divvy("playground --cluster orders").refused(2, "--cluster goes with --store");
    divvy("playground --interval 1s").refused(2, "--interval goes with --store");
    for (line, why) in [
        ("--store memory", "store 'memory': is of one process"),
        (
            "--store nats://127.0.0.1:1 --mode lease",
            "store 'nats://127.0.0.1:1': has no leases",
        ),
        (
            "--store file:./a.db --workers 33",
            "workers '33': must be in 1..=32 on a real store",
        ),
    ] {
        divvy(&format!("playground --listen 127.0.0.1:0 {line}")).refused(2, why);
    }
    for flags in ["--scenario lease-cut-off", "--replay leader:1", "--seed 3"] {
        let run = divvy(&format!("playground --store file:./a.db {flags}"));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        let word = flags.split(' ').next().expect("a flag");
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
    divvy("playground --observe --store memory").refused(2, "store 'memory': lives and ends");
    divvy("playground --scenario nope --headless").refused(2, "scenario 'nope': is neither");
    divvy("playground --listen 0.0.0.0:0").refused(2, "listen '0.0.0.0:0': can be reached");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let run = divvy(&format!("playground --listen {address}"));
    run.refused(
        1,
        &format!("--listen {address}: Address already in use: give another port"),
    );
    let scratch = Scratch::new();
    scratch.file("bad.yaml", "name: bad\n");
    let run = scratch.run(["playground", "--scenario", "bad.yaml", "--headless"]);
    run.refused(2, "bad.yaml: title 'nothing': must be given");
}

#[test]
fn the_page_is_there_at_once_and_signals_end_it_cleanly() {
    for signal in [Signal::INT, Signal::TERM] {
        let scratch = Scratch::new();
        let mut command = scratch.command();
        command.args(["playground", "--workers", "3", "--mode", "lease"]);
        let mut playground = PlaygroundProcess::start(&mut command);
        assert_eq!(playground.ask("GET", "/", "").0, 200);
        assert_eq!(playground.snapshot()["mode"], "lease");
        playground.signal(signal);
        let status = playground.child().wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{signal:?}");
    }
}
