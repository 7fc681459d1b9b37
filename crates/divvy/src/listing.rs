//! Lists of partitions in files: CSV with a header, JSON or YAML, read entry by
//! entry and refused at the first that breaks a rule.

// What is hidden from the documentation is for divvy's command line, which reads
// lists of workers the same way; it may change with every release.

mod csv;
mod json;
mod list;
mod near;
mod number;
mod owners;
mod row;
mod yaml;

#[doc(hidden)]
pub use near::nearest;
pub use owners::owners;
#[doc(hidden)]
pub use owners::owners_noting;
#[doc(hidden)]
pub use row::{Field, Place, Row};

use std::borrow::Cow;
use std::collections::BTreeMap;
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
#[doc(hidden)]
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
            Some("csv" | "tsv") => Some(Self::Csv),
            Some("json") => Some(Self::Json),
            Some("yaml" | "yml") => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The form that a text without a name has by its beginning.
    pub fn of_text(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with(['[', '{']) {
            Self::Json
        } else if text.starts_with("- ") {
            Self::Yaml
        } else {
            Self::Csv
        }
    }
}

/// Makes a `T` of each entry, of which no more are held than there may be.
/// Columns of a CSV file that are not known are left out, which is told in
/// `notes`.
#[doc(hidden)]
pub fn collect_noting<T>(
    form: Form,
    text: &str,
    shape: &Shape,
    notes: &mut Vec<String>,
    make: impl FnMut(&Row<'_>) -> Result<T, String>,
) -> Result<Vec<T>, Fault> {
    collected(form, text, shape, Some(notes), make)
}

fn collected<T>(
    form: Form,
    text: &str,
    shape: &Shape,
    notes: Option<&mut Vec<String>>,
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
        Form::Csv => csv::read(text, shape.fields, notes, &mut keep),
        Form::Json => json::read(text, shape.fields, &mut keep),
        Form::Yaml => yaml::read(text, shape.fields, &mut keep),
    }?;
    Ok(made)
}

/// Names the first entry that is given twice, where there is one, with both
/// places. `told` is what else there is to say of an entry.
///
/// For lists that were refused as a whole: it keeps every name, which reading
/// does not.
#[doc(hidden)]
pub fn refuse_repeated(
    form: Form,
    text: &str,
    shape: &Shape,
    field: &'static str,
    told: impl Fn(&Row<'_>) -> String,
) -> Result<(), Fault> {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let check = |row: &Row<'_>| {
        let name = row.required(0)?;
        let (place, told) = (row.place(), told(row));
        match seen.insert(name.to_owned(), format!("{place}{told}")) {
            None => Ok(()),
            Some(first) => {
                let here = match told.is_empty() {
                    true => told,
                    false => format!(", here{told}"),
                };
                let rule = format!("is given twice, first in {first}{here}");
                Err(Invalid::new(field, name, rule).to_string())
            }
        }
    };
    collected(form, text, shape, Some(&mut Vec::new()), check).map(|_| ())
}

/// Bytes as text, without a byte order mark.
#[doc(hidden)]
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
#[doc(hidden)]
pub const PARTITIONS: Shape = Shape {
    noun: "partitions",
    count: "partition count",
    count_max: PARTITIONS_MAX,
    fields: &[
        Field::of_name("key").or(&["partition", "name"]),
        Field::of_value("weight"),
    ],
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
    partitions_of(form, text, None)
}

/// The same where columns of a CSV file that are not known are left out, which
/// is told in `notes`.
#[doc(hidden)]
pub fn partitions_noting(
    form: Form,
    text: &str,
    notes: &mut Vec<String>,
) -> Result<Partitions, Fault> {
    partitions_of(form, text, Some(notes))
}

fn partitions_of(
    form: Form,
    text: &str,
    notes: Option<&mut Vec<String>>,
) -> Result<Partitions, Fault> {
    let listed = collected(form, text, &PARTITIONS, notes, |row| weighted(row, 1))?;
    Partitions::new(listed).map_err(|error| {
        let repeated = refuse_repeated(form, text, &PARTITIONS, "partition", |_| String::new());
        repeated.err().unwrap_or_else(|| Fault {
            place: None,
            reason: error.to_string(),
        })
    })
}

/// The partition of a row that begins with its key, and its weight, which may
/// stand in this field.
fn weighted(row: &Row<'_>, weight: usize) -> Result<Partition, String> {
    let told = |error: Error| error.to_string();
    let partition: Partition = row.required(0)?.parse().map_err(told)?;
    match row.whole(weight)? {
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
#[doc(hidden)]
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
        let all = super::collected(form, text, &SHAPE, None, |row| {
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

    #[test]
    fn the_second_of_two_equal_names_says_where_the_first_is() {
        for (form, text, expected) in [
            (
                Form::Csv,
                "key,weight\nx,1\n\nx,2\n",
                "line 4: partition 'x': is given twice, first in line 2",
            ),
            (
                Form::Json,
                r#"["x", "y", "x"]"#,
                "entry 3: partition 'x': is given twice, first in entry 1",
            ),
        ] {
            let told = partitions(form, text).expect_err(text).to_string();
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_header_may_call_columns_as_others_do() {
        let plain = partitions(Form::Csv, "key,weight\nx,5\n").unwrap();
        for text in [
            "partition,weight\nx,5\n",
            "Name;Weight\nx;5.0\n",
            "key\tweight\nx\t5\n",
        ] {
            assert_eq!(partitions(Form::Csv, text).unwrap(), plain, "{text}");
        }
        // A name of its own counts before what others call it.
        let mut notes = Vec::new();
        let text = "name,key,wieght\nfirst,x,5\n";
        let read = partitions_noting(Form::Csv, text, &mut notes).unwrap();
        assert_eq!(read.as_slice()[0].as_str(), "x");
        assert_eq!(
            notes,
            ["unknown columns left out: 'name', 'wieght' (did you mean weight?)"]
        );
    }

    #[test]
    fn columns_that_are_not_known_are_refused_unless_they_are_noted() {
        let text = "key,region\nx,eu\n";
        let told = partitions(Form::Csv, text).expect_err(text).to_string();
        assert_eq!(
            told,
            "line 1: column 'region': is unknown, known are key, weight"
        );
        let many = "key,a,b,c,d,e,f,g\nx\n";
        let mut notes = Vec::new();
        partitions_noting(Form::Csv, many, &mut notes).unwrap();
        assert!(notes[0].ends_with("'e' and 2 more"), "{notes:?}");
    }

    #[test]
    fn a_file_without_a_header_is_told_what_it_lacks() {
        let told = partitions(Form::Csv, "orders:0,5\norders:1,7\n");
        let told = told.expect_err("no header").to_string();
        assert_eq!(
            told,
            "line 1: the header has no column 'key': does the file have a header? the first line \
             must be key,weight"
        );
    }

    #[test]
    fn a_point_between_thousands_is_not_guessed_at() {
        for text in ["key;weight\nx;1.000\n", "key,weight\nx,1.000\n"] {
            let told = partitions(Form::Csv, text).expect_err(text).to_string();
            assert!(told.contains("could be 1 or 1000"), "{told}");
        }
        let decimal = |text: &str| {
            let read = super::collected(Form::Csv, text, &SHAPE, None, |row| row.decimal(1));
            read.map_err(|fault| fault.to_string())
        };
        let told = decimal("id;weight\na;1.000\n").expect_err("two readings");
        assert_eq!(
            told,
            "line 2: weight '1.000': could be 1 or 1000: write it as one of them"
        );
        assert_eq!(decimal("id,weight\na,1.000\n"), Ok(vec![Some(1.0)]));
        assert_eq!(decimal("id;weight\na;1.5\n"), Ok(vec![Some(1.5)]));
    }
}
