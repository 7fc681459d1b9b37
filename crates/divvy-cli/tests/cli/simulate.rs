//! `divvy simulate`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::scratch::{Scratch, divvy};

#[test]
fn json_counts_what_happened_and_finds_nothing_broken() {
    let result = divvy("simulate --mode leader --seeds 10 --json").json();
    assert_eq!(result["seeds"], 10);
    assert_eq!(result["violations"], 0);
    assert!(result["cluster_hours"].as_f64().unwrap() > 0.1);
    assert!(result["events"].as_u64().unwrap() > 1000);
    assert!(result["grants"].as_u64().unwrap() > 10);
    assert!(result["faults"]["crash"].as_u64().is_some());
}

#[test]
fn a_seed_traces_the_same_bytes_twice() {
    let first = divvy("simulate --mode leader --seed 7 --trace").done();
    assert!(first.lines().count() > 100);
    assert_eq!(
        divvy("simulate --mode leader --seed 7 --trace").done(),
        first
    );
}

#[test]
fn lease_mode_has_the_same_flags_and_a_trace_of_its_own() {
    let result = divvy("simulate --mode lease --seeds 10 --json").json();
    assert_eq!(result["seeds"], 10);
    assert_eq!(result["violations"], 0);
    assert!(result["grants"].as_u64().unwrap() > 10);
    assert!(result["faults"]["eviction"].as_u64().is_some());
    assert!(result["faults"].get("crash_of_leader").is_none());
    let first = divvy("simulate --mode lease --seed 7 --trace").done();
    assert!(first.lines().count() > 100);
    let second = divvy("simulate --mode lease --seed 7 --trace").done();
    assert_eq!(second, first);
    let run = divvy("simulate --mode lease --seed 0 --defect no-drift");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stdout
            .contains("  divvy simulate --mode lease --seed 0")
    );
    assert!(run.stdout.contains("--defect no-drift --trace"));
}

#[test]
fn a_run_of_one_mode_does_not_go_on_in_the_other() {
    let scratch = Scratch::new();
    let run = |mode| {
        let args = [
            "simulate", "--mode", mode, "--seeds", "4", "--resume", "run.json",
        ];
        scratch.run(args)
    };
    assert_eq!(run("lease").code, 0);
    let told = run("leader");
    assert_eq!(told.code, 1);
    assert!(told.stderr.contains("mode lease"), "{}", told.stderr);
}

#[test]
fn a_planted_mistake_is_told_with_the_command_that_shows_it_again() {
    let line = "simulate --mode leader --seed 0 --defect version-reused";
    let run = divvy(line);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.starts_with("error: seed 0 broke I"),
        "{}",
        run.stderr
    );
    assert!(
        run.stdout
            .contains("  divvy simulate --mode leader --seed 0")
    );
    assert!(run.stdout.contains("--defect version-reused --trace"));
}

#[test]
fn a_long_run_goes_on_from_its_file() {
    let scratch = Scratch::new();
    let run = |seeds: u32| {
        let seeds = seeds.to_string();
        let args = [
            "simulate", "--seeds", &seeds, "--resume", "run.json", "--json",
        ];
        scratch.run(args).json()
    };
    assert_eq!(run(4)["seeds"], 4);
    let whole = divvy("simulate --seeds 9 --json").json();
    assert_eq!(run(9), whole);
    let told = scratch.run(["simulate", "--from", "5", "--resume", "run.json"]);
    assert_eq!(told.code, 2);
    let why = "error: from '5': cannot be given: run.json is there and says where to go on\n";
    assert_eq!(told.stderr, why);
}

#[test]
fn a_long_run_that_is_killed_goes_on_as_if_it_had_not_been() {
    let scratch = Scratch::new();
    let hours = ["simulate", "--hours", "3", "--jobs", "2", "--json"];
    let mut command = scratch.command();
    command.args(hours).args(["--resume", "run.json"]);
    let mut killed = command.stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !scratch.path("run.json").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no file yet");
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let resumed = hours.into_iter().chain(["--resume", "run.json"]);
    assert_eq!(scratch.run(resumed).json(), scratch.run(hours).json());
}

#[test]
fn values_out_of_bounds_are_wrong_usage() {
    for (line, told) in [
        ("simulate --seeds 0", "error: seeds '0': must be"),
        ("simulate --hours -1", "error: hours '-1': must be"),
        ("simulate --seed seven", "error: seed 'seven': must be"),
        ("simulate --from 1.5", "error: from '1.5': must be"),
        ("simulate --jobs 0", "error: jobs '0': must be"),
        (
            "simulate --seed 1 --from 2",
            "error: --seed <N> does not go with --from <N>",
        ),
        (
            "simulate --defects --from 2",
            "error: --defects does not go with --from <N>",
        ),
        (
            "simulate --seed 1 --defect none",
            "error: defect 'none': is not",
        ),
        (
            "simulate --mode lease --seed 1 --defect version-reused",
            "error: defect 'version-reused': is not",
        ),
    ] {
        let run = divvy(line);
        assert_eq!(run.code, 2, "{line}: {}", run.stderr);
        assert!(run.stderr.starts_with(told), "{line}: {}", run.stderr);
    }
}
