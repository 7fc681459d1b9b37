//! Why a command ended without its result, and the exit code that says so.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::terminal;

/// Exit code where the command could not be done.
const CODE_FAILED: u8 = 1;
/// Exit code where it was not asked for properly.
const CODE_USAGE: u8 = 2;

/// Why a command ended without its result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for could not be done: exit code 1.
    Failed(anyhow::Error),
    /// What was typed breaks a rule, which the message names: exit code 2.
    Usage(String),
}

impl Failure {
    /// Something that was typed breaks a rule: which field, which value, which
    /// bound.
    pub(crate) fn usage(
        field: &'static str,
        value: impl std::fmt::Display,
        rule: impl Into<String>,
    ) -> Self {
        divvy::Error::from(divvy::Invalid::new(field, value, rule)).into()
    }

    /// A flag that the command cannot do without was not given, nor a previous
    /// assignment that has such a set.
    pub(crate) fn missing(flag: &str, forms: &str, set: &str) -> Self {
        Self::Usage(format!(
            "{flag} is missing: give {forms}, or --previous, whose {set} are taken"
        ))
    }

    /// Writing the result failed.
    pub(crate) fn output(error: io::Error) -> Self {
        Self::Failed(anyhow::Error::new(error).context("standard output"))
    }

    /// Tells the user in one line on stderr, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let (code, message) = match self {
            Self::Failed(error) if is_broken_pipe(error) => return ExitCode::SUCCESS,
            Self::Failed(error) => (CODE_FAILED, format!("{error:#}")),
            Self::Usage(message) => (CODE_USAGE, message.clone()),
        };
        // Where stderr is gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "divvy: {}", terminal::printable(&message));
        ExitCode::from(code)
    }
}

impl From<divvy::Error> for Failure {
    fn from(error: divvy::Error) -> Self {
        match error {
            divvy::Error::Invalid(invalid) => Self::Usage(invalid.to_string()),
            error => Self::Failed(error.into()),
        }
    }
}

/// Whether the reader of our output went away, as `head` does: it has what it
/// wanted.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
