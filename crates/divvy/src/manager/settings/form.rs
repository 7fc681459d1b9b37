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
    read.err().map(|error| error.to_string())
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
