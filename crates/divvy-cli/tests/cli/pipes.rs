//! Readers that go away, and places that take nothing.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, PipeWriter};
use std::process::{Child, Stdio};

use crate::scratch::Scratch;

/// Where there is no space left.
fn full() -> File {
    let opened = OpenOptions::new().write(true).open("/dev/full");
    opened.expect("Linux has it")
}

/// A pipe that nobody reads any more.
fn gone() -> PipeWriter {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    for format in ["--json", "--list", "--csv"] {
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
        let output = scratch
            .command()
            .args(line.split(' '))
            .stdout(full())
            .output()
            .expect("the binary can be started");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(
            told.starts_with("error: standard output: No space left"),
            "{line}: {told}"
        );
        assert_eq!(told.lines().count(), 1);
    }
}

#[test]
fn help_that_cannot_be_written_is_told_unless_its_reader_went_away() {
    for line in ["--help", "--version", "assign --help", "help plan"] {
        let scratch = Scratch::new();
        let mut command = scratch.command();
        let full = command.args(line.split(' ')).stdout(full()).output();
        let full = full.expect("the binary can be started");
        assert_eq!(full.status.code(), Some(1), "{line}");
        assert_eq!(
            String::from_utf8_lossy(&full.stderr),
            "error: standard output: No space left on device\n",
            "{line}"
        );
        let mut command = scratch.command();
        let gone = command.args(line.split(' ')).stdout(gone()).output();
        let gone = gone.expect("the binary can be started");
        assert_eq!(
            (gone.status.code(), gone.stderr),
            (Some(0), vec![]),
            "{line}"
        );
    }
}

#[test]
fn stderr_may_be_gone() {
    // An error, a warning, what -v has to say, and wrong usage.
    let cases = [
        (1, "assign --workers 0 --partitions 1"),
        (0, "key --scheme djb2-js --partitions 5 a"),
        (0, "-v key --scheme djb2-js --partitions 5 a"),
        (
            0,
            "-v assign --workers @w.csv --partitions 9 --plot load.svg",
        ),
        (
            0,
            "assign --workers 3 --partitions 9 --strategy zoned --band 0.1",
        ),
        (2, "assign --nonsense"),
    ];
    for (code, line) in cases {
        let scratch = Scratch::new();
        scratch.file("w.csv", "id\na\nb\n");
        let usual = scratch.run(line.split(' '));
        assert!(!usual.stderr.is_empty(), "{line}");
        for stderr in [Stdio::from(full()), Stdio::from(gone())] {
            let mut command = scratch.command();
            let output = command
                .args(line.split(' '))
                .stdout(Stdio::piped())
                .stderr(stderr);
            let output = output.spawn().and_then(Child::wait_with_output);
            let output = output.expect("the binary can be started");
            assert_eq!(output.status.code(), Some(code), "{line}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), usual.stdout);
        }
    }
}
