//! Which field of a settings file is wrong, where the parser does not say.

use divvy_core::{Error, Invalid};
use serde_json::{Map, Value};

use super::document::Document;

/// Fields that hold fields.
const NESTED: [&str; 3] = ["assignment", "retry", "strategy"];

/// A list of values in the order of the fields would be taken for them: one that
/// is meant so cannot be told from one that is a mistake.
pub(super) fn check_shape(shape: Option<&Value>) -> Result<(), Error> {
    let Some(shape) = shape else { return Ok(()) };
    if shape.is_array() {
        return Err(document("must be named fields, and not a list".to_owned()));
    }
    let is_list = |field: &&&str| shape.get(**field).is_some_and(Value::is_array);
    match NESTED.iter().find(is_list) {
        Some(field) => Err(document(format!(
            "field '{field}': must be named fields, and not a list"
        ))),
        None => Ok(()),
    }
}

/// What a parser said, with the field that it stumbled over.
pub(super) fn unreadable(error: &dyn std::fmt::Display, shape: Option<&Value>) -> Error {
    let blamed = shape.and_then(Value::as_object).and_then(blame);
    document(match blamed {
        Some((field, why)) => format!("field '{field}': {why}"),
        None => error.to_string(),
    })
}

/// The first field that cannot be read even if it is alone.
fn blame(fields: &Map<String, Value>) -> Option<(String, String)> {
    fields.iter().find_map(|(field, value)| {
        let why = alone(field, value.clone())?;
        let inner = value.as_object().filter(|_| field != "strategy");
        let inner = inner.into_iter().flatten().find_map(|(name, value)| {
            let one = Map::from_iter([(name.clone(), value.clone())]);
            Some((format!("{field}.{name}"), alone(field, one.into())?))
        });
        Some(inner.unwrap_or_else(|| (field.clone(), why)))
    })
}

/// Why settings with this field alone cannot be read, if they cannot.
fn alone(field: &str, value: Value) -> Option<String> {
    let one = Map::from_iter([(field.to_owned(), value)]);
    let read: Result<Document, _> = serde_json::from_value(one.into());
    read.err().map(|error| error.to_string())
}

fn document(message: String) -> Error {
    Error::Document {
        document: "settings",
        message: Invalid::new("", "", message).rule().to_owned(),
    }
}
