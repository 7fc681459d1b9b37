//! What is known about the terminal: width, colour, and what is safe to print.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal as _};

/// Columns where the output is not a terminal.
const WIDTH_DEFAULT: usize = 80;
/// Columns below which nothing is wrapped any narrower.
const WIDTH_MIN: usize = 40;
/// Most rows of a table that a terminal gets to see unless asked for all.
pub(crate) const ROWS_MAX: usize = 40;

/// Where and how a result is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Whether somebody looks at it, so that a long table may be shortened.
    pub(crate) interactive: bool,
    /// Whether to colour.
    pub(crate) colour: bool,
    /// Columns to wrap to.
    pub(crate) width: usize,
}

impl Terminal {
    /// What stdout is.
    pub(crate) fn of_stdout() -> Self {
        let interactive = io::stdout().is_terminal();
        let width = if interactive {
            terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
        } else {
            None
        };
        Self {
            interactive,
            colour: interactive && colour_is_welcome(),
            width: width.unwrap_or(WIDTH_DEFAULT).max(WIDTH_MIN),
        }
    }

    /// Whether a table of so many rows may be shown as it is.
    pub(crate) fn fits(&self, rows: usize) -> bool {
        !self.interactive || rows <= ROWS_MAX
    }
}

/// Whether warnings are coloured.
pub(crate) fn colours_stderr() -> bool {
    io::stderr().is_terminal() && colour_is_welcome()
}

/// By <https://no-color.org>: any value but the empty one says no.
fn colour_is_welcome() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// `text` on one line and without anything that a terminal would act on.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_debug());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_printed() {
        assert_eq!(printable("käse:17"), "käse:17");
        assert_eq!(printable("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
    }
}
