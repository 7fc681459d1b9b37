//! SVG as text.

use std::fmt::{Arguments, Write as _};

/// Adds an element, on a line of its own.
pub(super) fn line(out: &mut String, content: Arguments<'_>) {
    out.write_fmt(content).expect("a string takes anything");
    out.push('\n');
}

/// `text` as XML content. Names have no control characters, but may have the
/// two others that XML has no way to write.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
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
