//! Rules that the whole tree of commands keeps, so that what was learnt of one
//! is true of the others.

use std::collections::BTreeMap;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _, Parser as _};

use super::{Args, NatsArgs};
use crate::exec::CommandLine;

/// Every command that the help shows, with the words that lead to it.
fn commands() -> Vec<(String, Command)> {
    let mut root = Args::command();
    root.build();
    let mut found = Vec::new();
    let mut open = vec![("divvy".to_owned(), root)];
    while let Some((path, command)) = open.pop() {
        for below in command.get_subcommands() {
            if !below.is_hide_set() && below.get_name() != "help" {
                open.push((format!("{path} {}", below.get_name()), below.clone()));
            }
        }
        found.push((path, command));
    }
    assert!(found.len() > 25, "only {} commands", found.len());
    found
}

fn text(styled: Option<&StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}

/// The flags and positionals that the help of a command shows, but for those
/// that every command has.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set());
    arguments.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version" | "verbose"))
}

fn value_name(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    match arg.get_action().takes_values() {
        true => names.join(" "),
        false => String::new(),
    }
}

/// All lines of examples of a command, those for servers, too.
fn examples(command: &Command) -> Vec<String> {
    let all = text(command.get_long_about()) + "\n" + &text(command.get_after_long_help());
    let lines = all.lines().filter(|line| line.starts_with("  "));
    let lines = lines.map(str::trim);
    let lines = lines.filter(|line| line.starts_with("divvy ") || line.starts_with("DIVVY_STORE="));
    lines.map(str::to_owned).collect()
}

#[test]
fn bench_failover_starts_no_more_workers_than_it_is_asked_for() {
    let counts = |line: &str| {
        let args = Args::try_parse_from(line.split(' ')).unwrap();
        let super::Command::Bench(super::BenchCommand::Failover(args)) = args.command else {
            panic!("{line} is another command");
        };
        (args.workers(), args.start_workers())
    };
    assert_eq!(counts("divvy bench failover"), (8, 64));
    assert_eq!(counts("divvy bench failover --workers 4"), (4, 4));
    let both = "divvy bench failover --workers 4 --start-workers 16";
    assert_eq!(counts(both), (4, 16));
}

#[test]
fn the_definition_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn every_command_has_a_purpose_in_a_line_and_examples() {
    for (path, command) in commands() {
        let about = text(command.get_about());
        let is_line = !about.is_empty() && !about.contains('\n') && !about.ends_with('.');
        assert!(is_line && about.len() <= 90, "{path}: {about}");
        let after = text(command.get_after_long_help());
        let has_examples = after.starts_with("Examples:\n") || after.starts_with("On servers:\n");
        assert!(has_examples, "{path}: {after}");
        assert!(!examples(&command).is_empty(), "{path}");
    }
}

#[test]
fn every_argument_says_what_it_is_for_and_defaults_look_alike() {
    for (path, command) in commands() {
        for arg in arguments(&command) {
            let help = text(arg.get_help());
            let place = format!("{path} {arg}: {help}");
            assert!(help.starts_with(char::is_uppercase), "{place}");
            assert!(!help.ends_with('.') && !help.contains('\n'), "{place}");
            assert!(!help.to_lowercase().contains("by default"), "{place}");
            if let Some(at) = help.find("[default: ") {
                assert_eq!(help.find(']'), Some(help.len() - 1), "{place}");
                assert!(help[at..].len() > "[default: ]".len(), "{place}");
                assert!(arg.get_default_values().is_empty(), "{place}");
            }
            for value in arg.get_possible_values() {
                let about = text(value.get_help());
                assert!(!about.ends_with('.'), "{place}: {}", value.get_name());
            }
        }
    }
}

#[test]
fn a_flag_takes_the_same_and_is_told_alike_wherever_it_is() {
    let mut seen: BTreeMap<(String, String), (String, String)> = BTreeMap::new();
    let mut forms: BTreeMap<String, (String, String)> = BTreeMap::new();
    for (path, command) in commands() {
        for arg in arguments(&command) {
            let Some(flag) = arg.get_long() else { continue };
            let value = value_name(arg);
            // A form that takes more begins with the one that takes less.
            let first = value.split('|').next().unwrap_or_default().to_owned();
            let known = forms
                .entry(flag.to_owned())
                .or_insert_with(|| (first.clone(), path.clone()));
            assert_eq!(known.0, first, "--{flag}: {path} and {}", known.1);
            let help = text(arg.get_help());
            let begins = help.split([' ', ',', ':', ';']).next().unwrap_or_default();
            let begins = begins.to_owned();
            let known = seen
                .entry((flag.to_owned(), value))
                .or_insert_with(|| (begins.clone(), path.clone()));
            assert_eq!(known.0, begins, "--{flag}: {path} and {}", known.1);
        }
    }
}

#[test]
fn flags_of_one_letter_are_the_same_everywhere() {
    for (path, command) in commands() {
        for arg in command.get_arguments() {
            let short = arg.get_short();
            let is_known = match arg.get_id().as_str() {
                "help" => short == Some('h'),
                "version" => short == Some('V'),
                "verbose" => short == Some('v'),
                _ => short.is_none(),
            };
            assert!(is_known, "{path} {arg}: {short:?}");
        }
    }
}

#[test]
fn spans_of_time_are_called_so_and_have_a_unit() {
    for (path, command) in commands() {
        for arg in arguments(&command) {
            for value in arg.get_default_values() {
                let value = value.to_string_lossy();
                let is_span = value.starts_with(|c: char| c.is_ascii_digit())
                    && value.ends_with(|c: char| c.is_ascii_alphabetic());
                assert_eq!(is_span, value_name(arg) == "SPAN", "{path} {arg}: {value}");
            }
        }
    }
}

#[test]
fn every_line_of_examples_is_understood() {
    let mut lines = 0;
    for (path, command) in commands() {
        for line in examples(&command) {
            let typed = line.split(" > ").next().unwrap_or_default();
            let typed = typed.split_once("divvy ").map_or("", |(_, rest)| rest);
            let typed = format!("divvy {typed}");
            let words = CommandLine::parse("example", &typed).expect("a line for a shell");
            if let Err(error) = Args::try_parse_from(words.words()) {
                panic!("{path}: {line}: {error}");
            }
            lines += 1;
        }
    }
    assert!(lines > 70, "only {lines} lines");
}

#[test]
fn what_is_laid_out_or_pasted_fits_eighty_columns() {
    for (path, command) in commands() {
        let texts = [command.get_long_about(), command.get_after_long_help()];
        let usage = command.clone().render_usage().to_string();
        let texts = texts.map(text).join("\n");
        let laid_out = texts.lines().filter(|line| line.starts_with("  "));
        for line in laid_out.chain(usage.lines()) {
            assert!(line.chars().count() <= 80, "{path}: {line}");
        }
    }
}

#[test]
fn commands_in_sentences_stand_in_quotes() {
    let names: Vec<String> = commands()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.contains(' '))
        .collect();
    for (path, command) in commands() {
        let mut texts = vec![text(command.get_about()), text(command.get_long_about())];
        texts.extend(arguments(&command).map(|arg| text(arg.get_help())));
        let sentences = texts.iter().flat_map(|text| text.lines());
        for line in sentences.filter(|line| !line.starts_with("  ")) {
            for name in &names {
                let bare = line.match_indices(name.as_str());
                let bare = bare.filter(|(at, _)| !line[..*at].ends_with('`'));
                assert_eq!(bare.count(), 0, "{path}: {line}");
            }
        }
    }
}

#[test]
fn what_stands_under_a_heading_is_of_its_kind() {
    for (path, command) in commands() {
        for arg in arguments(&command) {
            let expected = match arg.get_id().as_str() {
                "exec" | "grace" | "output_dir" => Some("Running a command"),
                "on_stop" | "return_within" | "run_for" | "print_config" | "tick" | "deadlines"
                | "health_cmd" | "health_interval" | "store" | "json" => None,
                id if NatsArgs::has(id) => Some("NATS only"),
                _ => continue,
            };
            assert_eq!(arg.get_help_heading(), expected, "{path} {arg}");
        }
    }
}

#[test]
fn the_strategy_that_the_help_of_a_worker_names_is_the_default() {
    let default = divvy::manager::Settings::default().strategy;
    let (_, worker) = commands()
        .into_iter()
        .find(|(path, _)| path == "divvy worker")
        .expect("there are workers");
    let mut arguments = arguments(&worker);
    let strategy = arguments.find(|arg| arg.get_id() == "strategy");
    let help = text(strategy.expect("a flag for it").get_help());
    assert!(
        help.ends_with(&format!("[default: {}]", default.name.as_str())),
        "{help}"
    );
}
