//! Command lines with places in them: `consume {workload} {unit} {token}`.

mod shell;

use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use divvy::Invalid;
use divvy::store::Token;

use crate::failure::Failure;

/// Longest command line, in bytes.
const BYTES_MAX: usize = 64 * 1024;

/// What can be filled in.
const PLACES: [&str; 4] = ["partition", "workload", "unit", "token"];

/// A command and its arguments. No shell reads it: what is filled in cannot
/// become anything but part of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    words: Vec<String>,
    /// What was probably meant for a shell.
    for_shell: Option<String>,
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
        let for_shell = shell::meant_for(flag, &words);
        let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
        match words.first().is_none_or(String::is_empty) {
            true => Err(refused("must begin with a command")),
            false => Ok(Self { words, for_shell }),
        }
    }

    /// The same with places to fill in. What looks like one and is none is a
    /// mistake.
    pub(super) fn with_places(flag: &'static str, text: &str) -> Result<Self, Failure> {
        let line = Self::parse(flag, text)?;
        let mut pieces = line.words.iter().flat_map(|word| pieces(word));
        if let Some(name) = pieces.find_map(|piece| piece.unknown()) {
            let places = PLACES.map(|place| format!("{{{place}}}")).join(", ");
            let rule = format!(
                "{{{name}}} is filled in with nothing: there are {places}; for the word in \
                 braces itself, write {{{{{name}}}}}"
            );
            return Err(Failure::Usage(Invalid::new(flag, text, rule).to_string()));
        }
        Ok(line)
    }

    /// The words, with places filled in.
    pub(super) fn filled(&self, fill: &Fill<'_>) -> Vec<String> {
        let token = fill.token.to_string();
        let values = [fill.partition, fill.workload, fill.unit, &token];
        let filled = |piece: Piece<'_>| match piece {
            Piece::Place(place) => values[place].to_owned(),
            Piece::Text(text) => text.to_owned(),
            Piece::Unknown(name) => format!("{{{name}}}"),
        };
        let fill_word = |word: &String| pieces(word).into_iter().map(filled).collect();
        self.words.iter().map(fill_word).collect()
    }

    /// Whether there is such a program, where its name has no places to fill in.
    pub(crate) fn check_program(&self, flag: &'static str) -> Result<(), Failure> {
        let program = self.words[0].as_str();
        let is_place = |piece: Piece<'_>| matches!(piece, Piece::Place(_));
        if pieces(program).into_iter().any(is_place) {
            return Ok(());
        }
        let found = if program.contains('/') {
            is_executable(Path::new(program))
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|place| is_executable(&place.join(program)))
        };
        match found {
            true => Ok(()),
            false => Err(Failure::usage(
                flag,
                program,
                "is no program that can be run",
            )),
        }
    }

    /// Warns of what was probably meant for a shell.
    pub(crate) fn warn(&self) {
        if let Some(warning) = &self.for_shell {
            tracing::warn!("{warning}");
        }
    }

    /// The words as they are.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }
}

fn is_executable(path: &Path) -> bool {
    let is_program = |found: Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    path.metadata().is_ok_and(is_program)
}

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    /// Stands for itself.
    Text(&'a str),
    /// Is filled in: the number of the place.
    Place(usize),
    /// Looks like a place.
    Unknown(&'a str),
}

impl<'a> Piece<'a> {
    fn unknown(self) -> Option<&'a str> {
        match self {
            Self::Unknown(name) => Some(name),
            Self::Place(_) | Self::Text(_) => None,
        }
    }
}

/// Takes a word apart. `{{unit}}` stands for `{unit}`, and `${unit_file}` is a
/// shell's.
fn pieces(word: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        let (before, found) = rest.split_at(at);
        pieces.push(Piece::Text(before));
        let escaped = found[1..].strip_prefix('{').and_then(name);
        let escaped = escaped.filter(|name| found[2 + name.len()..].starts_with("}}"));
        let (piece, length) = match (escaped, name(&found[1..])) {
            (Some(name), _) => (Piece::Text(&found[1..name.len() + 3]), name.len() + 4),
            (None, Some(name)) => {
                let place = PLACES.iter().position(|place| *place == name);
                let length = name.len() + 2;
                match place {
                    Some(place) => (Piece::Place(place), length),
                    None if before.ends_with('$') => (Piece::Text(&found[..length]), length),
                    None => (Piece::Unknown(name), length),
                }
            }
            (None, None) => (Piece::Text("{"), 1),
        };
        pieces.push(piece);
        rest = &found[length..];
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// The name that a text begins with, where a brace closes behind it.
fn name(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('}')?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && name.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(name)
}

/// A word as it was typed.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// Some of it is in quotes, or behind a backslash.
    is_quoted: bool,
    /// Of that, some as no shell would read it either.
    is_literal: bool,
}

impl Word {
    fn quoted(word: &mut Option<Self>, is_literal: bool) -> &mut Self {
        let word = word.get_or_insert_default();
        word.is_quoted = true;
        word.is_literal |= is_literal;
        word
    }
}

fn words(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = Word::quoted(&mut word, true);
                loop {
                    match characters.next()? {
                        '\'' => break,
                        c => word.text.push(c),
                    }
                }
            }
            '"' => {
                let word = Word::quoted(&mut word, false);
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => word.text.push(characters.next()?),
                        c => word.text.push(c),
                    }
                }
            }
            '\\' => Word::quoted(&mut word, true).text.push(characters.next()?),
            c => word.get_or_insert_default().text.push(c),
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
        let text = "run {workload}/{unit} {token} {{unit}} ${HOME} ${unit} { {} {a,b} {{{unit}}}";
        let line = CommandLine::with_places("exec", text).unwrap();
        let fill = Fill {
            partition: "p",
            workload: "{unit} ; rm",
            unit: "3",
            token: Token::new(9).unwrap(),
        };
        let expected = [
            "run",
            "{unit} ; rm/3",
            "9",
            "{unit}",
            "${HOME}",
            "$3",
            "{",
            "{}",
            "{a,b}",
            "{{unit}}",
        ];
        assert_eq!(line.filled(&fill), expected);
    }

    #[test]
    fn what_looks_like_a_place_and_is_none_is_refused_unless_it_is_escaped() {
        for text in ["echo {nosuch}", "awk '{print}'", "x {unit}{Unit}"] {
            let refused = CommandLine::with_places("exec", text).unwrap_err();
            let told = refused.to_string();
            assert!(
                told.contains("{partition}, {workload}, {unit}, {token}"),
                "{told}"
            );
        }
        let line = CommandLine::with_places("exec", "awk '{{print}}'").unwrap();
        let fill = Fill {
            partition: "p",
            workload: "w",
            unit: "0",
            token: Token::new(1).unwrap(),
        };
        assert_eq!(line.filled(&fill), ["awk", "{print}"]);
    }
}
