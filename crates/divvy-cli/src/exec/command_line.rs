//! Command lines with places in them: `consume {workload} {unit} {token}`.

use divvy::Invalid;
use divvy::store::Token;

use crate::failure::Failure;

/// Longest command line, in bytes.
const BYTES_MAX: usize = 64 * 1024;

/// A command and its arguments. No shell reads it: what is filled in cannot
/// become anything but part of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    words: Vec<String>,
}

/// What places are filled with.
#[derive(Debug, Clone)]
pub(super) struct Fill<'a> {
    pub(super) partition: &'a str,
    pub(super) workload: &'a str,
    pub(super) unit: &'a str,
    pub(super) token: Token,
}

impl CommandLine {
    /// Words parted by white space; quotes and backslashes keep together what
    /// belongs together.
    pub(crate) fn parse(flag: &'static str, text: &str) -> Result<Self, Failure> {
        let refused = |rule: &str| Failure::Usage(Invalid::new(flag, text, rule).to_string());
        if text.len() > BYTES_MAX {
            return Err(refused(&format!("must be at most {BYTES_MAX} bytes")));
        }
        if text.contains('\0') {
            return Err(refused("must not contain a NUL"));
        }
        let words = words(text).ok_or_else(|| refused("has a quote that is never closed"))?;
        match words.first().is_none_or(String::is_empty) {
            true => Err(refused("must begin with a command")),
            false => Ok(Self { words }),
        }
    }

    /// The words, with places filled in.
    pub(super) fn filled(&self, fill: &Fill<'_>) -> Vec<String> {
        let token = fill.token.to_string();
        let fill_word = |word: &String| {
            let mut filled = String::new();
            let mut rest = word.as_str();
            while let Some(at) = rest.find('{') {
                filled.push_str(&rest[..at]);
                rest = &rest[at..];
                let places = [
                    ("{partition}", fill.partition),
                    ("{workload}", fill.workload),
                    ("{unit}", fill.unit),
                    ("{token}", &token),
                ];
                let place = places.iter().find(|(place, _)| rest.starts_with(place));
                let (place, value) = place.copied().unwrap_or(("{", "{"));
                filled.push_str(value);
                rest = &rest[place.len()..];
            }
            filled + rest
        };
        self.words.iter().map(fill_word).collect()
    }

    /// The words as they are.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }
}

fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => loop {
                match characters.next()? {
                    '\'' => {
                        word.get_or_insert_default();
                        break;
                    }
                    c => word.get_or_insert_default().push(c),
                }
            },
            '"' => loop {
                match characters.next()? {
                    '"' => {
                        word.get_or_insert_default();
                        break;
                    }
                    '\\' => word.get_or_insert_default().push(characters.next()?),
                    c => word.get_or_insert_default().push(c),
                }
            },
            '\\' => word.get_or_insert_default().push(characters.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<String> {
        CommandLine::parse("exec", text).unwrap().words
    }

    #[test]
    fn words_are_parted_by_space_and_kept_together_by_quotes() {
        assert_eq!(parsed("sleep  1000 "), ["sleep", "1000"]);
        assert_eq!(
            parsed(r#"sh -c 'echo "$X" | cat' "a \" b" c\ d ''"#),
            ["sh", "-c", "echo \"$X\" | cat", "a \" b", "c d", ""]
        );
        for bad in ["", "  ", "sh -c 'open", "a \"b", "''"] {
            assert!(CommandLine::parse("exec", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn places_are_filled_and_what_is_filled_in_is_not_looked_at_again() {
        let line = CommandLine::parse("exec", "run {workload}/{unit} {token} {other} {").unwrap();
        let fill = Fill {
            partition: "p",
            workload: "{unit} ; rm",
            unit: "3",
            token: Token::new(9).unwrap(),
        };
        let expected = ["run", "{unit} ; rm/3", "9", "{other}", "{"];
        assert_eq!(line.filled(&fill), expected);
    }
}
