//! What the parser of the command line has to say in place of a result: that
//! something typed is wrong, or the help that was asked for.

use std::error::Error as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::NatsArgs;
use crate::failure::Failure;
use crate::terminal::{self, excerpt};

/// Most names that a hint repeats.
const NAMED_MAX: usize = 3;

/// Prints it, and gives the exit code.
pub(crate) fn report(error: clap::Error) -> ExitCode {
    if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let code = Failure::Usage(told(&error)).report();
        if let Some(hint) = hint(&error) {
            // Where stderr is gone there is nobody left to tell.
            let _gone = writeln!(io::stderr(), "hint: {}", terminal::message(&hint));
        }
        return code;
    }
    let code = ExitCode::from(error.exit_code() as u8);
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed {
        Ok(()) => code,
        Err(_) if error.use_stderr() => code,
        Err(error) => Failure::output(error).report(),
    }
}

/// One line: what was typed, and what it has to be.
fn told(error: &clap::Error) -> String {
    let arg = named(error, ContextKind::InvalidArg);
    // The parsers of values name field, value and bound; many flags share that of
    // spans of time, which does not know for which of them it reads.
    if let (ErrorKind::ValueValidation, Some(reason)) = (error.kind(), error.source()) {
        let reason = reason.to_string();
        return match (reason.strip_prefix("span '"), arg) {
            (Some(rest), Some(arg)) => format!("{} '{rest}", field(&arg)),
            _ => reason,
        };
    }
    let typed = named(error, ContextKind::InvalidValue);
    let said = match error.kind() {
        ErrorKind::UnknownArgument => arg.map(|arg| {
            let command = asked_for(error).unwrap_or_default();
            let rule = of_others(&command, &arg).unwrap_or("is unknown");
            format!("argument '{}': {rule}", excerpt(&arg))
        }),
        ErrorKind::InvalidSubcommand => named(error, ContextKind::InvalidSubcommand)
            .map(|command| format!("command '{}': is unknown", excerpt(&command))),
        ErrorKind::MissingSubcommand => named(error, ContextKind::ValidSubcommand)
            .map(|commands| format!("a command is missing: give one of {commands}")),
        ErrorKind::MissingRequiredArgument => arg.map(|arg| format!("{arg} is missing")),
        ErrorKind::ArgumentConflict => {
            let others = named(error, ContextKind::PriorArg);
            arg.map(|arg| match others {
                Some(other) if other != arg => format!("{arg} does not go with {other}"),
                _ => format!("{arg} is given twice"),
            })
        }
        ErrorKind::InvalidValue => arg.map(|arg| {
            let names = named(error, ContextKind::ValidValue);
            let rule = names.map(|names| format!("must be one of {names}"));
            match typed.as_deref() {
                None | Some("") => {
                    let rule = rule.map(|rule| format!(", which {rule}"));
                    format!("{arg} is without its value{}", rule.unwrap_or_default())
                }
                Some(typed) => {
                    let rule = rule.unwrap_or_else(|| "is not one of its values".to_owned());
                    format!("{} '{}': {rule}", field(&arg), excerpt(typed))
                }
            }
        }),
        _ => None,
    };
    said.unwrap_or_else(|| first_line(error))
}

/// Why a command is without a flag that its neighbours have.
fn of_others(command: &str, arg: &str) -> Option<&'static str> {
    let is_of = |name: &str| command.split(' ').nth(1) == Some(name);
    if (is_of("agent") || is_of("workload")) && NatsArgs::has(arg) {
        return Some("is for NATS, which has no leases; agents use memory, file and redis stores");
    }
    if is_of("workload") && arg == "--cluster" {
        return Some("is not needed: workloads belong to all clusters of a store");
    }
    None
}

/// What may have been meant, or else where to read what there is.
fn hint(error: &clap::Error) -> Option<String> {
    // The bound or the names are told with the value.
    if matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
    ) {
        return None;
    }
    let command = asked_for(error);
    let arg = named(error, ContextKind::InvalidArg).unwrap_or_default();
    let is_meant = of_others(command.as_deref().unwrap_or_default(), &arg).is_some();
    let meant = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    let mut meant = meant.into_iter().filter(|_| !is_meant);
    let meant = meant.find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(name.clone()),
        ContextValue::Strings(names) => Some(names[..names.len().min(NAMED_MAX)].join(", ")),
        _ => None,
    });
    if let Some(meant) = meant {
        return Some(format!("there is {meant}"));
    }
    Some(format!("{} --help shows what there is", command?))
}

/// The command that was being typed, as its usage begins.
fn asked_for(error: &clap::Error) -> Option<String> {
    let usage = match error.get(ContextKind::Usage)? {
        ContextValue::StyledStr(usage) => usage.to_string(),
        _ => return None,
    };
    let words = usage.strip_prefix("Usage: ")?.split_whitespace();
    let words = words.take_while(|word| !word.starts_with(['-', '<', '[']));
    Some(words.collect::<Vec<_>>().join(" "))
}

fn named(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        _ => None,
    }
}

/// The name of a flag such as `--on-stop <HOW>` in words, as other messages
/// have it.
fn field(arg: &str) -> String {
    let name = arg.split_whitespace().next().unwrap_or(arg);
    let name = name.trim_start_matches('-').trim_matches(['<', '>', '.']);
    name.replace('-', " ").to_lowercase()
}

/// What the parser itself says.
fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    fn refused(line: &str) -> (String, Option<String>) {
        let words = ["divvy"].into_iter().chain(line.split(' '));
        let error = Args::try_parse_from(words).expect_err(line);
        (told(&error), hint(&error))
    }

    #[test]
    fn mistakes_are_told_in_one_line_with_what_may_have_been_meant() {
        let cases = [
            (
                "assign --wrokers 3",
                "argument '--wrokers': is unknown",
                "there is --workers",
            ),
            (
                "agent --store memory --bucket b",
                "argument '--bucket': is for NATS, which has no leases; agents use memory, file \
                 and redis stores",
                "divvy agent --help shows what there is",
            ),
            (
                "workload list --creds-file c",
                "argument '--creds-file': is for NATS, which has no leases; agents use memory, \
                 file and redis stores",
                "divvy workload list --help shows what there is",
            ),
            (
                "workload set orders 8 --cluster c",
                "argument '--cluster': is not needed: workloads belong to all clusters of a store",
                "divvy workload set --help shows what there is",
            ),
            ("stauts", "command 'stauts': is unknown", "there is status"),
            (
                "key",
                "<KEY>... is missing",
                "divvy key --help shows what there is",
            ),
            (
                "simulate --seeds 3 --seed 4",
                "--seeds <N> does not go with --seed <N>",
                "divvy simulate --help shows what there is",
            ),
            (
                "key a --group x --group y",
                "--group <NAME> is given twice",
                "divvy key --help shows what there is",
            ),
        ];
        for (line, message, hinted) in cases {
            assert_eq!(refused(line), (message.to_owned(), Some(hinted.to_owned())));
        }
    }

    #[test]
    fn a_bad_value_is_told_by_its_parser_and_needs_no_hint() {
        let cases = [
            (
                "bench failover --kills 0",
                "kills '0': must be a whole number in 1..=10000",
            ),
            (
                "worker --run-for 5",
                "run for '5': must be a time such as 500ms, 30s or 1m30s",
            ),
            (
                "worker --preset slow",
                "preset 'slow': must be one of fast, default, calm",
            ),
            (
                "worker --preset",
                "--preset <NAME> is without its value, which must be one of fast, default, calm",
            ),
        ];
        for (line, message) in cases {
            assert_eq!(refused(line), (message.to_owned(), None));
        }
    }
}
