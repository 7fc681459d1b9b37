//! Why a command ended without its result, and the exit code that says so.

use std::fmt;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use crate::terminal;
use crate::voice;

/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Exit code where the command could not be done.
const CODE_FAILED: u8 = 1;
/// Exit code where it was not asked for properly.
const CODE_USAGE: u8 = 2;

/// Why a command ended without its result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for could not be done: exit code 1.
    Failed(anyhow::Error),
    /// The result could not be written to stdout: exit code 1, unless its
    /// reader went away.
    Output(io::Error),
    /// What was typed breaks a rule, which the message names: exit code 2.
    Usage(String),
}

impl Failure {
    /// Something that was typed breaks a rule: which field, which value, which
    /// bound.
    pub(crate) fn usage(
        field: &'static str,
        value: impl fmt::Display,
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

    /// Both of these, or what is wrong with either: mistakes of both are told at
    /// once.
    pub(crate) fn both<A, B>(one: Result<A, Self>, other: Result<B, Self>) -> Result<(A, B), Self> {
        match (one, other) {
            (Ok(one), Ok(other)) => Ok((one, other)),
            (Err(Self::Usage(one)), Err(Self::Usage(other))) => {
                Err(Self::Usage(format!("{one}; {other}")))
            }
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        }
    }

    /// Writing the result failed.
    pub(crate) fn output(error: io::Error) -> Self {
        Self::Output(error)
    }

    /// Tells the user in one line on stderr, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let code = match self {
            // Who reads us, as `head` does, has what it wanted.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::SUCCESS;
            }
            Self::Output(_) | Self::Failed(_) => CODE_FAILED,
            Self::Usage(_) => CODE_USAGE,
        };
        let message = unnumbered(&self.to_string());
        voice::tell(format!("error: {}\n", terminal::message(&message)).into_bytes());
        voice::end(LAST_WORDS);
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => write!(f, "standard output: {}", plain(error)),
            Self::Failed(error) => f.write_str(&told(error)),
            Self::Usage(message) => f.write_str(message),
        }
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

/// An error with what it comes from.
fn told(error: &anyhow::Error) -> String {
    let causes = error.chain().map(|cause| match cause.downcast_ref() {
        Some(error) => plain(error),
        None => cause.to_string(),
    });
    causes.collect::<Vec<_>>().join(": ")
}

/// A message without the numbers that the system has for its errors.
fn unnumbered(message: &str) -> String {
    const START: &str = " (os error ";
    let mut told = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(START) {
        told += before;
        let numbered = after.split_once(')');
        rest = match numbered.filter(|(number, _)| number.parse::<i32>().is_ok()) {
            Some((_, rest)) => rest,
            None => {
                told += START;
                after
            }
        };
    }
    told + rest
}

/// What the system says, without the number that it has for it.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let number = error
        .raw_os_error()
        .map(|code| format!(" (os error {code})"));
    match number.and_then(|number| text.strip_suffix(&number)) {
        Some(text) => text.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_system_are_not_told() {
        for (message, told) in [
            (
                "a: refused (os error 111) (tried for 5s)",
                "a: refused (tried for 5s)",
            ),
            ("a (os error 2): b (os error 3)", "a: b"),
            ("a (os error x) b", "a (os error x) b"),
            ("a (os error ", "a (os error "),
            ("nothing", "nothing"),
        ] {
            assert_eq!(unnumbered(message), told);
        }
    }
}
