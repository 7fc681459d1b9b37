//! JSON lists.

use serde::de::DeserializeSeed as _;

use super::Fault;
use super::list::{List, Reading};
use super::row::{Field, Row};

/// Reads a JSON list and hands each entry to `keep`.
pub(super) fn read(
    text: &str,
    fields: &[Field],
    keep: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Fault> {
    let mut list = List::new(fields, Reading::Typed, keep);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = list
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    read.map_err(|error| {
        // The message of the library tells the line.
        list.fault(|| Fault {
            place: None,
            reason: error.to_string(),
        })
    })
}
