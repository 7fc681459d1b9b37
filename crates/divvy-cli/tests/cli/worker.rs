//! `divvy worker` where nothing is to be coordinated.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::scratch::{Scratch, divvy};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_store_that_is_not_reached_is_told_and_an_error() {
    let scratch = Scratch::new();
    scratch.file("soon.yaml", "preset: fast\nstartup_timeout: 500ms\n");
    for store in ["nats://127.0.0.1:1", "redis://127.0.0.1:1"] {
        let args = ["worker", "--store", store, "--partitions", "4"];
        let run = scratch.run(args.into_iter().chain(["--config", "soon.yaml"]));
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        let last = run.stderr.lines().last().unwrap_or_default();
        let told =
            format!("error: the store was not reached within startup_timeout (500ms): {store}");
        assert!(last.starts_with(&told), "{last}");
        // It does not wait for its first attempt to be over before it says so.
        let first = run.stderr.lines().next().unwrap_or_default();
        let told = format!("note: {store}: ");
        assert!(first.starts_with(&told), "{first}");
        assert!(first.contains("; trying again for up to "), "{first}");
    }
}

#[test]
fn tries_to_reach_a_store_are_told_with_their_number_and_delay() {
    let scratch = Scratch::new();
    let retry = "retry: {max_retries: 1, initial_delay: 10ms, max_delay: 20ms}";
    scratch.file("soon.yaml", format!("{retry}\nstartup_timeout: 30s\n"));
    let line = "worker --store redis://127.0.0.1:1 --partitions 4 --config soon.yaml";
    let run = scratch.run(line.split_whitespace());
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    let told = run.stderr;
    for words in [
        "; trying again in ",
        "s (1 of 1), each time for up to 5s, until startup_timeout (30s) is over",
        "error: the store was not reached in 2 attempts: ",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("lost"), "{told}");
}

#[test]
fn a_worker_that_has_not_joined_in_its_time_is_an_error() {
    let line = "worker --store nats://127.0.0.1:1 --partitions 4 --run-for 300ms";
    let run = divvy(line);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
    let told = "error: it had not joined when --run-for was over\n";
    assert!(run.stderr.ends_with(told), "{}", run.stderr);
}

#[test]
fn a_worker_is_not_given_nothing_to_own() {
    for (partitions, value) in [("0", "0"), ("demo:0", "demo:0"), ("a:1,b:0", "b:0")] {
        let line = format!("worker --store memory --partitions {partitions} --run-for 1s");
        let told = format!("partitions '{value}': must have a count in 1..=");
        divvy(&line).refused(2, &told);
    }
}

#[test]
fn a_file_of_partitions_that_cannot_be_read_at_the_start_is_one_line() {
    let scratch = Scratch::new();
    scratch.file("broken.csv", "id\n\"");
    for (name, why) in [("none.csv", "No such file"), ("broken.csv", "broken.csv: ")] {
        let line = format!("worker --store memory --partitions @{name}");
        let run = scratch.run(line.split_whitespace());
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        let told = format!("error: --partitions: {name}: ");
        assert!(run.stderr.starts_with(&told), "{}", run.stderr);
        assert!(run.stderr.contains(why), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

#[test]
fn verbose_shows_what_events_are_about() {
    let run = divvy("-v worker --store memory --preset fast --partitions 3 --run-for 2s");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let told = "note: committed an assignment, version ";
    let mut lines = run.stderr.lines().filter(|line| line.starts_with(told));
    assert!(
        lines.any(|line| line.contains(", granted 3, revoked 0")),
        "{}",
        run.stderr
    );
}

#[test]
fn a_secret_that_is_missing_is_told_and_an_error() {
    let line = "worker --store nats://127.0.0.1:1 --token-file missing --partitions 4";
    let run = divvy(line);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("missing"), "{}", run.stderr);
}

#[test]
fn a_span_for_coming_back_needs_coming_back() {
    let line = "worker --store memory --partitions 4 --on-stop leave --return-within 5s";
    divvy(line).refused(2, "--return-within needs --on-stop return");
}

#[test]
fn settings_without_an_end_are_not_read_for_ever() {
    let line = "worker --store memory --partitions 4 --config /dev/zero";
    divvy(line).refused(1, "--config /dev/zero: has more than");
}

#[test]
fn signals_are_heard_although_nobody_reads() {
    let scratch = Scratch::new();
    let mut command = scratch.command();
    let line = "worker --store memory --preset fast --partitions 50 --tick 1ms";
    let mut child = command
        .args(line.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = child.stdout.take().unwrap();
    // How much a pipe holds depends on how it is filled.
    let mut held = (0, Instant::now());
    wait(&mut child, "the pipe is full", |_| {
        let now = rustix::io::ioctl_fionread(&unread).unwrap();
        if now != held.0 {
            held = (now, Instant::now());
        }
        now > 10_000 && held.1.elapsed() > Duration::from_secs(1)
    });
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    wait(&mut child, "it ends", |child| {
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// Waits for something of a process, which does not outlive the wait in vain.
fn wait(child: &mut Child, what: &str, mut is_so: impl FnMut(&mut Child) -> bool) {
    let begun = Instant::now();
    while !is_so(child) {
        if begun.elapsed() > SOON {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("not within {SOON:?}: {what}");
        }
        std::thread::yield_now();
    }
}

#[test]
fn every_line_is_documented_with_all_its_fields() {
    let page = include_str!("../../../../docs/operating.md");
    let (_, page) = page.split_once("### Lines of a worker\n").unwrap();
    for line in include_str!("../../src/commands/worker/lines.txt").lines() {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let start = format!("| `{name}` |");
        let row = page.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("{name} is not documented"));
        for field in words {
            assert!(row.contains(&format!("`{field}`")), "{name}: {field}");
        }
    }
}
