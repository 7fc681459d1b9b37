//! SVG as text.

use std::fmt::{Arguments, Write as _};

use crate::terminal::printable;

/// Adds an element, on a line of its own.
pub(super) fn line(out: &mut String, content: Arguments<'_>) {
    out.write_fmt(content).expect("a string takes anything");
    out.push('\n');
}

/// `text` as XML content, with nothing in it that is invisible. Names may have
/// the two characters that XML has no way to write.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}
