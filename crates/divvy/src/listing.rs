//! Lists of workers and partitions in files: CSV with a header, JSON or YAML,
//! read entry by entry and refused at the first that breaks a rule.

mod csv;
mod json;
mod list;
mod row;
mod yaml;

pub use row::{Field, Row};

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use divvy_core::{Error, Invalid, PARTITIONS_MAX, Partition, Partitions};

/// Largest list that is read, in bytes.
pub const LIST_BYTES_MAX: u64 = 1 << 30;
/// What spreadsheets put in front of UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Longest piece of a value that a message repeats.
const EXCERPT_CHARS_MAX: usize = 60;

/// What is wrong with a list, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Such as `line 3`; `None` where it is the whole list.
    pub place: Option<String>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for Fault {}

/// What a file lists.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// What entries are, such as `workers`.
    pub noun: &'static str,
    /// What their number is called, such as `worker count`.
    pub count: &'static str,
    /// How many there may be.
    pub count_max: usize,
    /// The first has to have a value, the others may.
    pub fields: &'static [Field],
}

/// The form of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A header, then a line for each entry.
    Csv,
    /// A list of maps, or of plain names.
    Json,
    /// The same in YAML.
    Yaml,
}

impl Form {
    /// The form that the ending of a file's name says.
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension().unwrap_or_default();
        match ending.to_ascii_lowercase().to_str() {
            Some("csv") => Some(Self::Csv),
            Some("json") => Some(Self::Json),
            Some("yaml" | "yml") => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Makes a `T` of each entry, of which no more are held than there may be.
pub fn collect<T>(
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

/// Bytes as text, without a byte order mark.
pub fn text_of(bytes: Vec<u8>) -> Result<String, Fault> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        Fault {
            place: Some(format!("line {line}")),
            reason: "is not UTF-8, save it as UTF-8".to_owned(),
        }
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

/// A list of partitions: `key` and, where it has one, `weight`.
pub const PARTITIONS: Shape = Shape {
    noun: "partitions",
    count: "partition count",
    count_max: PARTITIONS_MAX,
    fields: &[Field::of_name("key"), Field::of_value("weight")],
};

/// Reads a list of partitions.
///
/// ```
/// use divvy::listing::{Form, partitions};
///
/// let read = partitions(Form::Csv, "key,weight\ntool001:chamber1,150\n")?;
/// assert_eq!(read.as_slice()[0].weight(), 150);
/// # Ok::<(), divvy::listing::Fault>(())
/// ```
pub fn partitions(form: Form, text: &str) -> Result<Partitions, Fault> {
    let listed = collect(form, text, &PARTITIONS, partition_of_row)?;
    Partitions::new(listed).map_err(|error| Fault {
        place: None,
        reason: error.to_string(),
    })
}

fn partition_of_row(row: &Row<'_>) -> Result<Partition, String> {
    let told = |error: Error| error.to_string();
    let partition: Partition = row.required(0)?.parse().map_err(told)?;
    match row.parsed::<i64>(1, "must be a whole number in 0..=9223372036854775807")? {
        Some(weight) => partition.with_weight(weight).map_err(told),
        None => Ok(partition),
    }
}

/// A value as a message repeats it.
fn excerpt(text: &str) -> Cow<'_, str> {
    shortened(text, EXCERPT_CHARS_MAX)
}

/// `text` with at most so many characters: where there are more, some in the
/// middle are left out. Messages begin with what they are about and end with
/// the rule.
pub fn shortened(text: &str, chars_max: usize) -> Cow<'_, str> {
    let tail = chars_max / 3;
    let head = chars_max.saturating_sub(tail + 1);
    // Most texts are short enough, and no more is looked at of one that is not.
    if text.char_indices().nth(chars_max).is_none() {
        return Cow::Borrowed(text);
    }
    let start = text
        .char_indices()
        .nth(head)
        .map_or(text.len(), |(at, _)| at);
    let end = match tail {
        0 => text.len(),
        tail => text
            .char_indices()
            .nth_back(tail - 1)
            .map_or(0, |(at, _)| at),
    };
    Cow::Owned(format!("{}…{}", &text[..start], &text[end..]))
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
