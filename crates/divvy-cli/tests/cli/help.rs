//! `--help`: what it shows works.

use crate::scratch::{Scratch, divvy};

/// The lines of the examples of a help text.
fn examples(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Examples:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect()
}

#[test]
fn every_example_works_in_the_order_shown() {
    for command in [
        "",
        "key",
        "assign",
        "plan",
        "explain",
        "simulate",
        "playground",
        "worker",
        "workload",
        "doctor",
        "bench stores",
        "bench failover",
        "completions",
        "man",
    ] {
        let help = divvy(&format!("{command} --help")).done();
        let shown = examples(&help);
        assert!((2..=5).contains(&shown.len()), "{command}: {shown:?}");
        let scratch = Scratch::new();
        scratch.file("workers.csv", "id,weight,zone\na,1,a\nb,2,b\n");
        scratch.file(
            "partitions.yaml",
            "- key: tool001:chamber1\n  weight: 4\n- key: tool001:chamber2\n  weight: 5\n",
        );
        for line in shown {
            assert!(line.contains("divvy "), "{command}: {line}");
            let run = scratch.shell(line);
            // How fast a busy machine is, is not the question here.
            let is_slow = command == "bench failover" && run.stderr.starts_with("error: missed: ");
            if !is_slow {
                let told = run.stderr.lines();
                let told = told.filter(|line| !is_of_the_lease(line) && !is_a_note(line));
                let told: Vec<&str> = told.collect();
                assert_eq!((run.code, told), (0, Vec::new()), "{line}");
            }
            assert!(!run.stdout.is_empty() || line.contains('>'), "{line}");
        }
    }
}

/// What a strategy does not look at is told, and nothing is wrong.
fn is_a_note(line: &str) -> bool {
    line.starts_with("note: ")
}

/// Nor whether it can keep a lease.
fn is_of_the_lease(line: &str) -> bool {
    line.starts_with("warning: the lease ")
}

#[test]
fn help_and_version_go_to_stdout() {
    for line in ["--help", "-h", "help", "help assign", "assign -h"] {
        assert!(divvy(line).done().contains("Usage: divvy"), "{line}");
    }
    assert_eq!(
        divvy("--version").done(),
        format!("divvy {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_top_help_says_what_exit_codes_mean() {
    let help = divvy("--help").done();
    for code in ["  0  done", "  1  could not", "  2  wrong usage"] {
        assert!(help.contains(code), "{help}");
    }
}

#[test]
fn without_a_command_the_help_is_shown_as_wrong_usage() {
    let run = divvy("");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("Usage: divvy"), "{}", run.stderr);
}
