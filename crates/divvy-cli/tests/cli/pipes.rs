//! Readers that go away, and places that take nothing.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::scratch::Scratch;

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    for format in ["--json", "--list"] {
        let scratch = Scratch::new();
        let mut child = scratch
            .command()
            .args(["assign", "--workers", "3", "--partitions", "100000", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let mut reader = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a first line");
        drop(reader);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
}

#[test]
fn a_full_disk_is_told() {
    let scratch = Scratch::new();
    for line in [
        "assign --workers 3 --partitions 9",
        "assign --workers 3 --partitions 99999 --json",
        "key a",
        "explain a --workers 2",
    ] {
        let full = OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it");
        let output = scratch
            .command()
            .args(line.split(' '))
            .stdout(full)
            .output()
            .expect("the binary can be started");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(
            told.starts_with("divvy: standard output: No space left"),
            "{line}: {told}"
        );
        assert_eq!(told.lines().count(), 1);
    }
}

#[test]
fn stderr_may_be_gone() {
    let scratch = Scratch::new();
    let full = OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let status = scratch
        .command()
        .args(["assign", "--workers", "0", "--partitions", "1"])
        .stderr(full)
        .status();
    assert_eq!(status.expect("the binary can be started").code(), Some(1));
}
