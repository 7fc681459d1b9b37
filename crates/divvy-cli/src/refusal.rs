//! What the parser of the command line has to say in place of a result: that
//! something typed is wrong, or the help that was asked for.

use std::error::Error as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextValue, ErrorKind};

use crate::failure::Failure;
use crate::terminal;

/// Most characters of all that is said of a mistake, which may show the usage.
const TEXT_CHARS_MAX: usize = 4000;

/// Prints it, and gives the exit code.
pub(crate) fn report(error: clap::Error) -> ExitCode {
    // A bad value is told in one line: the parsers name field, value and bound.
    if let (ErrorKind::ValueValidation, Some(reason)) = (error.kind(), error.source()) {
        return Failure::Usage(reason.to_string()).report();
    }
    let code = ExitCode::from(error.exit_code() as u8);
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        return match printed {
            Ok(()) => code,
            Err(error) => Failure::output(error).report(),
        };
    }
    // Where stderr is gone there is nobody left to tell.
    let _ = match error.kind() {
        // The help has nothing in it that was typed, and may have colours.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.print(),
        _ => io::stderr().write_all(harmless(error).as_bytes()),
    };
    code
}

/// What is said of a mistake, with what was typed shown and not sent.
fn harmless(mut error: clap::Error) -> String {
    let context: Vec<_> = error
        .context()
        .map(|(kind, value)| (kind, value.clone()))
        .collect();
    for (kind, value) in context {
        let shown = match value {
            ContextValue::String(text) => ContextValue::String(shown(&text)),
            ContextValue::Strings(texts) => {
                ContextValue::Strings(texts.iter().map(|text| shown(text)).collect())
            }
            ContextValue::StyledStrs(texts) => {
                let shown = texts
                    .iter()
                    .map(|text| StyledStr::from(shown(&text.to_string())));
                ContextValue::StyledStrs(shown.collect())
            }
            other => other,
        };
        error.insert(kind, shown);
    }
    let text = error.render().to_string();
    let lines: Vec<_> = text.lines().map(terminal::printable).collect();
    let text = lines.join("\n") + "\n";
    terminal::shortened(&text, TEXT_CHARS_MAX).into_owned()
}

fn shown(text: &str) -> String {
    terminal::message(text)
}
