//! Files of workers and partitions: size and form are checked before anything
//! is read into sets.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use divvy::Invalid;

use super::row::{Field, Row};
use super::{csv, json, yaml};
use crate::failure::Failure;

/// Largest file of workers or partitions that is read.
pub(super) const LIST_BYTES_MAX: u64 = 1 << 30;
/// What spreadsheets put in front of UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What goes wrong with the content of a file, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// Such as `line 3`; `None` where it is the whole file.
    pub(super) place: Option<String>,
    pub(super) reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// What a file lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// What entries are, such as `workers`.
    pub(super) noun: &'static str,
    /// What their number is called, such as `worker count`.
    pub(super) count: &'static str,
    pub(super) count_max: usize,
    /// The first has to have a value, the others may.
    pub(super) fields: &'static [Field],
}

/// A file that was named, and the flag that names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    flag: &'static str,
    path: &'a str,
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} @{}", self.flag, self.path)
    }
}

impl<'a> Source<'a> {
    /// The file that the value of a flag names, where it does.
    pub(super) fn of(flag: &'static str, value: &'a str) -> Option<Self> {
        let path = value.strip_prefix('@')?;
        Some(Self { flag, path })
    }

    /// The entries of a file, each made into a `T`.
    pub(super) fn rows<T>(
        self,
        shape: &Shape,
        make: impl FnMut(&Row<'_>) -> Result<T, String>,
    ) -> Result<Vec<T>, Failure> {
        let form = Form::of(shape.noun, self.path)?;
        let text = self.text(LIST_BYTES_MAX)?;
        let made = collect(form, &text, shape, make).map_err(|fault| self.wrong(&fault))?;
        tracing::debug!("read {} {} from {}", made.len(), shape.noun, self.path);
        Ok(made)
    }

    /// The content of a file as text, without a byte order mark.
    pub(super) fn text(self, bytes_max: u64) -> Result<String, Failure> {
        let bytes = bytes(self.path, bytes_max)
            .with_context(|| self.to_string())
            .map_err(Failure::Failed)?;
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
            self.wrong(&format_args!("line {line}: is not UTF-8, save it as UTF-8"))
        })?;
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len_utf8());
        }
        Ok(text)
    }

    /// The file was read and its content is wrong.
    pub(super) fn wrong(self, reason: &impl fmt::Display) -> Failure {
        Failure::Failed(anyhow!("{self}: {reason}"))
    }

    /// What was written behind the `@`.
    pub(super) fn path(self) -> &'a str {
        self.path
    }
}

/// Makes a `T` of each entry, of which no more are held than there may be.
fn collect<T>(
    form: Form,
    text: &str,
    shape: &Shape,
    mut make: impl FnMut(&Row<'_>) -> Result<T, String>,
) -> Result<Vec<T>, Fault> {
    let mut made = Vec::new();
    let mut keep = |row: &Row<'_>| {
        if made.len() == shape.count_max {
            let rule = format!("at most {} are allowed", shape.count_max);
            return Err(Invalid::new(shape.count, made.len() + 1, rule).to_string());
        }
        made.push(make(row)?);
        Ok(())
    };
    match form {
        Form::Csv => csv::read(text, shape.fields, &mut keep),
        Form::Json => json::read(text, shape.fields, &mut keep),
        Form::Yaml => yaml::read(text, shape.fields, &mut keep),
    }?;
    Ok(made)
}

fn bytes(path: &str, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(anyhow!("is a directory"));
    }
    let too_large = |size| anyhow!("has {size} bytes, at most {bytes_max} are read");
    if metadata.len() > bytes_max {
        return Err(too_large(metadata.len().to_string()));
    }
    // A pipe has no size until it has been read.
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(format!("more than {bytes_max}")));
    }
    Ok(bytes)
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Csv,
    Json,
    Yaml,
}

impl Form {
    /// The form that the ending of the name says.
    fn of(noun: &'static str, path: &str) -> Result<Self, Failure> {
        let ending = Path::new(path).extension().unwrap_or_default();
        match ending.to_ascii_lowercase().to_str() {
            Some("csv") => Ok(Self::Csv),
            Some("json") => Ok(Self::Json),
            Some("yaml" | "yml") => Ok(Self::Yaml),
            _ => {
                let rule = "the name of a file must end in .csv, .json, .yaml or .yml";
                Err(Failure::usage(noun, format_args!("@{path}"), rule))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        noun: "things",
        count: "thing count",
        count_max: 2,
        fields: &[Field::of_name("id"), Field::of_value("weight")],
    };

    /// How many entries were made into something, and what came of it.
    fn collected(form: Form, text: &str) -> (usize, Result<usize, String>) {
        let mut made = 0;
        let all = collect(form, text, &SHAPE, |row| {
            made += 1;
            row.required(0).map(str::to_owned)
        });
        let all = all.map(|all| all.len()).map_err(|fault| fault.to_string());
        (made, all)
    }

    #[test]
    fn no_entry_beyond_the_limit_is_made_into_anything() {
        let forms = [
            (Form::Csv, "id\na\nb\n", "c\n\"not closed", "line 4"),
            (Form::Json, r#"["a", "b""#, r#", "c", not JSON"#, "entry 3"),
            (Form::Yaml, "- a\n- b\n", "- c\n- {not: [YAML\n", "entry 3"),
        ];
        for (form, allowed, beyond, place) in forms {
            let text = format!("{allowed}{beyond}");
            let told = format!("{place}: thing count '3': at most 2 are allowed");
            assert_eq!(collected(form, &text), (2, Err(told)), "{form:?}");
        }
        assert_eq!(collected(Form::Csv, "id\na\nb\n"), (2, Ok(2)));
        assert_eq!(collected(Form::Json, r#"["a", "b"]"#), (2, Ok(2)));
        assert_eq!(collected(Form::Yaml, "- a\n- b\n"), (2, Ok(2)));
    }

    #[test]
    fn a_field_is_refused_before_what_follows_it_is_read() {
        let nested = "must be one value, not several";
        let cases = [
            (r#"[{"id":[0,0,0"#, nested),
            (r#"[{"id":{"#, nested),
            (r#"[{"id":"a","weight":[["#, nested),
            (r#"[{"id":"a","id":"#, "field 'id' stands twice"),
            (r#"[{"id":"a","ID":"#, "field 'ID' stands twice"),
            (
                r#"[{"id":"a","weight":1,"third":"#,
                "field 'third': is unknown",
            ),
        ];
        for (text, expected) in cases {
            let (made, all) = collected(Form::Json, text);
            let told = all.expect_err(text);
            assert_eq!(made, 0, "{text}");
            assert!(told.starts_with("entry 1: "), "{text}: {told}");
            assert!(told.contains(expected), "{text}: {told}");
        }
        let yaml = [
            ("- id:\n  - 0\n- {not: [YAML", nested),
            ("- id: {}\n- {not: [YAML", nested),
            ("- id: a\n  weight: [[0]]\n- {not: [YAML", nested),
            ("- ? [a, b]\n  : c\n- {not: [YAML", nested),
            ("- id: a\n  id: b\n- {not: [YAML", "field 'id' stands twice"),
            ("- id: a\n  ID: b\n- {not: [YAML", "field 'ID' stands twice"),
            (
                "- id: a\n  third: b\n- {not: [YAML",
                "field 'third': is unknown",
            ),
        ];
        for (text, expected) in yaml {
            let (made, all) = collected(Form::Yaml, text);
            let told = all.expect_err(text);
            assert_eq!(made, 0, "{text}");
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
