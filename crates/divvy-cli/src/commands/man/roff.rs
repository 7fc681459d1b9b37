//! Text in the language of manual pages.

use std::fmt::Write as _;

/// A manual page that is being written.
#[derive(Debug, Default)]
pub(super) struct Roff {
    text: String,
}

impl Roff {
    /// A page with this title.
    pub(super) fn titled(title: &str, version: &str) -> Self {
        let mut roff = Self::default();
        let title = escaped(&title.to_uppercase());
        roff.request(&format!(
            "TH \"{title}\" 1 \"\" \"{}\" \"User Commands\"",
            escaped(version)
        ));
        // Ragged lines and no hyphens: commands are copied from here.
        roff.request("nh");
        roff.request("ad l");
        roff
    }

    pub(super) fn section(&mut self, name: &str) {
        self.request(&format!("SH {}", escaped(name)));
    }

    pub(super) fn subsection(&mut self, name: &str) {
        self.request(&format!("SS {}", escaped(name)));
    }

    /// A paragraph, filled by whoever shows it.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.request("PP");
        self.line(&escaped(text));
    }

    /// Lines as they are.
    pub(super) fn verbatim(&mut self, lines: &[&str]) {
        self.request("PP");
        self.request("nf");
        for line in lines {
            self.line(&escaped(line));
        }
        self.request("fi");
    }

    /// A term in bold, and what it means.
    pub(super) fn item(&mut self, term: &str, text: &str) {
        self.request("TP");
        self.line(&format!("\\fB{}\\fR", escaped(term)));
        self.line(&escaped(text));
    }

    pub(super) fn text(self) -> String {
        self.text
    }

    fn request(&mut self, request: &str) {
        let _infallible = writeln!(self.text, ".{request}");
    }

    fn line(&mut self, line: &str) {
        // A dot or a quote at the start would be a request.
        let guard = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        let _infallible = writeln!(self.text, "{guard}{line}");
    }
}

/// Text that is shown as it is: a hyphen stays the one that is typed, and so do
/// quotes, which a page would otherwise make typographic.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\e"),
            '-' => shown.push_str("\\-"),
            '\'' => shown.push_str("\\(aq"),
            '"' => shown.push_str("\\(dq"),
            '`' => shown.push_str("\\(ga"),
            '^' => shown.push_str("\\(ha"),
            '~' => shown.push_str("\\(ti"),
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_taken_for_a_request() {
        let mut roff = Roff::default();
        roff.paragraph(".dot \\fB --flag 'word'");
        roff.verbatim(&["'quoted'", "plain"]);
        assert_eq!(
            roff.text(),
            ".PP\n\\&.dot \\efB \\-\\-flag \\(aqword\\(aq\n\
             .PP\n.nf\n\\(aqquoted\\(aq\nplain\n.fi\n"
        );
    }
}
