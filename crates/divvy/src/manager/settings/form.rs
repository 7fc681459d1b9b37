//! Reading settings, and which field is wrong where the parser does not say.

use divvy_core::{Error, Invalid};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Longest settings, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// How the settings of one kind are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// Fields that hold fields.
    pub(crate) nested: &'static [&'static str],
    /// Those of them that can only be read as a whole.
    pub(crate) whole: &'static [&'static str],
}

impl Form {
    pub(crate) fn read_json<D: DeserializeOwned>(self, text: &str) -> Result<D, Error> {
        check_size(text)?;
        let shape = serde_json::from_str(text).ok();
        self.check_shape(shape.as_ref())?;
        serde_json::from_str(text).map_err(|error| self.unreadable::<D>(&error, shape.as_ref()))
    }

    pub(crate) fn read_yaml<D: DeserializeOwned>(self, text: &str) -> Result<D, Error> {
        check_size(text)?;
        let shape: Result<Value, _> = serde_saphyr::from_str(text);
        self.check_shape(shape.as_ref().ok())?;
        serde_saphyr::from_str(text).map_err(|error| match &shape {
            Ok(shape) => self.unreadable::<D>(&error, Some(shape)),
            // Where the text itself is broken, no field is to blame.
            Err(broken) => document(one_line(&broken.to_string())),
        })
    }

    /// A list of values in the order of the fields would be taken for them: one
    /// that is meant so cannot be told from one that is a mistake.
    fn check_shape(self, shape: Option<&Value>) -> Result<(), Error> {
        let Some(shape) = shape else { return Ok(()) };
        if shape.is_array() {
            return Err(document("must be named fields, and not a list".to_owned()));
        }
        let is_list = |field: &&&str| shape.get(**field).is_some_and(Value::is_array);
        match self.nested.iter().find(is_list) {
            Some(field) => Err(document(format!(
                "field '{field}': must be named fields, and not a list"
            ))),
            None => Ok(()),
        }
    }

    /// What a parser said, with the field that it stumbled over.
    fn unreadable<D: DeserializeOwned>(
        self,
        error: &dyn std::fmt::Display,
        shape: Option<&Value>,
    ) -> Error {
        let fields = shape.and_then(Value::as_object);
        document(match fields.and_then(|fields| self.blame::<D>(fields)) {
            Some((field, why)) => format!("field '{field}': {why}"),
            None => one_line(&error.to_string()),
        })
    }

    /// The first field that cannot be read even if it is alone.
    fn blame<D: DeserializeOwned>(self, fields: &Map<String, Value>) -> Option<(String, String)> {
        fields.iter().find_map(|(field, value)| {
            let why = alone::<D>(field, value.clone())?;
            let unknown = format!("unknown field `{field}`");
            if why.starts_with(&unknown) {
                // All that there are would fill a page.
                return Some((field.clone(), unknown));
            }
            let is_whole = self.whole.contains(&field.as_str());
            let inner = value.as_object().filter(|_| !is_whole);
            let inner = inner.into_iter().flatten().find_map(|(name, value)| {
                let one = Map::from_iter([(name.clone(), value.clone())]);
                Some((format!("{field}.{name}"), alone::<D>(field, one.into())?))
            });
            Some(inner.unwrap_or_else(|| (field.clone(), why)))
        })
    }
}

/// What went wrong and where, without the picture that a parser draws of it
/// and without advice for whoever calls the parser.
fn one_line(told: &str) -> String {
    let first = told.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let advice = first.find(", set DuplicateKeyPolicy");
    first[..advice.unwrap_or(first.len())].to_owned()
}

/// Why settings with this field alone cannot be read, if they cannot.
fn alone<D: DeserializeOwned>(field: &str, value: Value) -> Option<String> {
    let one = Map::from_iter([(field.to_owned(), value)]);
    let read: Result<D, _> = serde_json::from_value(one.into());
    read.err().map(|error| plain(&error.to_string()))
}

/// What a parser says of a value, in words for whoever wrote it and not for
/// whoever wrote the program.
fn plain(told: &str) -> String {
    let Some((found, expected)) = told.split_once(", expected ") else {
        return told.to_owned();
    };
    if let Some(found) = found.strip_prefix("unknown variant ") {
        let choices = expected.strip_prefix("one of ").unwrap_or(expected);
        let (found, choices) = (found.trim_matches('`'), choices.replace('`', ""));
        return format!("must be one of {choices}, and not '{found}'");
    }
    let kinds = ["invalid type: ", "invalid value: "];
    let found = kinds.iter().find_map(|kind| found.strip_prefix(kind));
    let expected = match expected {
        "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "a boolean" => "true or false",
        "a string" => "text",
        "a map" => "named fields",
        _ => return told.to_owned(),
    };
    let Some(found) = found else {
        return told.to_owned();
    };
    // It is told as `string "heavy"`, `integer `-1``.
    let shown = found.split_once(' ').map_or(found, |(_kind, shown)| shown);
    let shown = shown.trim_matches(['`', '"']);
    format!("must be {expected}, and not '{shown}'")
}

fn check_size(text: &str) -> Result<(), Invalid> {
    if text.len() > BYTES_MAX {
        let rule = format!("must be at most {BYTES_MAX}");
        return Err(Invalid::new("settings bytes", text.len(), rule));
    }
    Ok(())
}

fn document(message: String) -> Error {
    Error::Document {
        document: "settings",
        message: Invalid::new("", "", message).rule().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_says_is_told_without_the_names_of_types() {
        for (told, expected) in [
            (
                "invalid type: string \"heavy\", expected f64",
                "must be a number, and not 'heavy'",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "must be a whole number from 0 on, and not '-1'",
            ),
            (
                "unknown variant `fsat`, expected one of `fast`, `default`, `rendezgo`",
                "must be one of fast, default, rendezgo, and not 'fsat'",
            ),
            (
                "must be a time such as 500ms",
                "must be a time such as 500ms",
            ),
        ] {
            assert_eq!(plain(told), expected);
        }
    }
}
