//! `divvy man`: the pages that it writes.

use std::fs;
use std::process::Command;

use crate::scratch::{Scratch, divvy};

#[test]
fn there_is_a_page_for_each_command_of_the_help() {
    let scratch = Scratch::new();
    let told = scratch.run(["man", "--dir", "pages/man1"]).done();
    let help = divvy("-h").done();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let path = format!("pages/man1/divvy-{name}.1");
        assert!(told.lines().any(|line| line == path), "{path}: {told}");
        let text = fs::read_to_string(scratch.path(&path)).expect("a page");
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES"] {
            assert!(
                text.contains(&format!("\n.SH {section}\n")),
                "{path}: {text}"
            );
        }
    }
    for hidden in [
        "run-child",
        "play-member",
        "sweep-children",
        "complete-words",
    ] {
        assert!(!told.contains(hidden), "{told}");
    }
}

#[test]
fn the_main_page_is_printed_and_says_what_exit_codes_mean() {
    let text = divvy("man").done();
    assert!(text.starts_with(".TH \"DIVVY\" 1 "), "{text}");
    assert!(text.contains("\n.SH EXIT STATUS\n"), "{text}");
    // Where there is something that shows pages, it has nothing to complain of.
    let scratch = Scratch::new();
    scratch.file("divvy.1", &text);
    let shown = Command::new("groff")
        .args(["-man", "-Tascii", "-ww", "divvy.1"])
        .current_dir(scratch.path(""))
        .output();
    if let Ok(shown) = shown {
        assert_eq!(String::from_utf8_lossy(&shown.stderr), "");
    }
}

#[test]
fn a_page_tells_arguments_from_options_and_what_values_mean() {
    let scratch = Scratch::new();
    scratch.run(["man", "--dir", "."]).done();
    let page = |name: &str| fs::read_to_string(scratch.path(name)).expect("a page");
    let (pin, status) = (page("divvy-pin.1"), page("divvy-status.1"));
    let (arguments, options) = pin.split_once("\n.SH OPTIONS\n").expect("options");
    assert!(arguments.contains("\n.SH ARGUMENTS\n"), "{pin}");
    assert!(
        arguments.contains("<WORKER>") && !options.contains("<WORKER>"),
        "{pin}"
    );
    assert!(!status.contains("ARGUMENTS"), "{status}");
    assert!(status.contains("lease (Workers take leases"), "{status}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    divvy("man --dir /dev/null/man1").refused(1, "dir '/dev/null/man1': Not a directory\n");
}
