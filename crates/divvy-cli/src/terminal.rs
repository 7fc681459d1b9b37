//! What is known about the terminal: width, colour, and what is safe to print.

use std::borrow::Cow;

pub(crate) use divvy::listing::shortened;
use std::env;
use std::io::{self, IsTerminal as _};

use crate::wrap::wrap;

/// Columns where the output is not a terminal.
const WIDTH_DEFAULT: usize = 80;
/// Columns below which nothing is wrapped any narrower.
const WIDTH_MIN: usize = 40;
/// Most rows of a table that a terminal gets to see unless asked for all.
pub(crate) const ROWS_MAX: usize = 40;

/// Columns beyond which a sentence is hard to read.
pub(crate) const SENTENCE_WIDTH_MAX: usize = 80;

/// Most characters of a message.
const MESSAGE_CHARS_MAX: usize = 600;
/// Most characters of a value that a message repeats.
const EXCERPT_CHARS_MAX: usize = 60;

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

    /// A line as it is written: wrapped where somebody looks at it, and whole
    /// where a program does.
    pub(crate) fn lines(&self, text: &str) -> Vec<String> {
        match self.interactive {
            true => wrap(text.split(' '), "", self.width.min(SENTENCE_WIDTH_MAX)),
            false => vec![text.to_owned()],
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

/// `text` on one line and without anything that a terminal would act on, or
/// that would show it as something else.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() || is_invisible(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_debug());
        } else if is_invisible(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// What has no shape of its own but changes how others are shown: marks of
/// direction, line separators, spaces without width. Joiners are not among
/// them, for scripts and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{061c}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    )
}

/// A message: printable, and of a length that a log and a reader can bear.
pub(crate) fn message(text: &str) -> String {
    // Twice, for what is escaped gets longer.
    let shown = shortened(text, MESSAGE_CHARS_MAX);
    let shown = printable(&shown);
    shortened(&shown, MESSAGE_CHARS_MAX).into_owned()
}

/// A value as a message repeats it.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    shortened(text, EXCERPT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_printed() {
        assert_eq!(printable("käse:17"), "käse:17");
        assert_eq!(printable("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
    }

    #[test]
    fn nothing_invisible_changes_how_a_name_is_shown() {
        for c in "\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}\u{feff}\u{2028}".chars() {
            let expected = format!("a\\u{{{:x}}}b", c as u32);
            assert_eq!(printable(&format!("a{c}b")), expected);
        }
        let joined = "می\u{200c}خواهم";
        assert_eq!(printable(joined), joined);
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("abcdefghij", 7), "abcd…ij");
        assert_eq!(shortened("äöüäöüäöüä", 7), "äöüä…üä");
        for length in [0, 599, 600, 601, 1_000_000] {
            let shown = message(&"\u{1b}".repeat(length));
            assert!(shown.chars().count() <= MESSAGE_CHARS_MAX, "{length}");
        }
    }
}
