//! JSON and YAML: a list of maps, or of plain strings.
//!
//! Entries are handed on one by one, so that a long list is never in memory
//! twice.

use std::fmt;
use std::marker::PhantomData;

use divvy::{Invalid, PARTITIONS_MAX};
use serde::Deserialize;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
};

use super::file::{FILE_BYTES_MAX, Fault};
use super::row::{Row, field_named};

/// Parts of a YAML entry that count: the map, four fields and their values.
const YAML_NODES_PER_ENTRY: usize = 12;

/// Reads a JSON list and hands each entry to `keep`.
pub(super) fn read_json(
    text: &str,
    fields: &[&'static str],
    keep: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Fault> {
    let mut list = List::<_, JsonCell>::new(fields, keep);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = list
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    read.map_err(|error| list.fault(error.to_string()))
}

/// Reads a YAML list and hands each entry to `keep`.
pub(super) fn read_yaml(
    text: &str,
    fields: &[&'static str],
    keep: impl FnMut(&Row<'_>) -> Result<(), String>,
) -> Result<(), Fault> {
    let mut list = List::<_, Option<String>>::new(fields, keep);
    // The defaults suit settings files; ours is as long as a set may be. What
    // aliases may do stays as bounded as it is.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: PARTITIONS_MAX * YAML_NODES_PER_ENTRY,
            max_nodes: PARTITIONS_MAX * YAML_NODES_PER_ENTRY,
            max_total_scalar_bytes: FILE_BYTES_MAX as usize,
        },
        with_snippet: false,
    };
    let read =
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
            list.deserialize(deserializer)
        });
    read.map_err(|error| list.fault(error.to_string()))
}

/// A list that is being read. `V` is what a cell is read as.
struct List<'a, F, V> {
    fields: &'a [&'static str],
    keep: F,
    /// The number of the entry at hand, from 1.
    entry: usize,
    /// What is wrong with it, where it is not the syntax.
    reason: Option<String>,
    cell: PhantomData<V>,
}

impl<'a, F, V> List<'a, F, V>
where
    F: FnMut(&Row<'_>) -> Result<(), String>,
{
    fn new(fields: &'a [&'static str], keep: F) -> Self {
        Self {
            fields,
            keep,
            entry: 0,
            reason: None,
            cell: PhantomData,
        }
    }

    fn take(&mut self, entry: Entry<V>) -> Result<(), String>
    where
        V: TryInto<Option<String>>,
    {
        let mut row = Row::new(self.fields);
        match entry {
            Entry::Text(text) => row.set(0, &text),
            Entry::Number(shown) => {
                let rule = "is a number or a truth value; put quotes around a name";
                return Err(Invalid::new("entry", shown, rule).to_string());
            }
            Entry::Map(cells) => {
                let mut seen = vec![false; self.fields.len()];
                for (name, value) in cells {
                    let field = field_named("field", &name, self.fields)?;
                    if std::mem::replace(&mut seen[field], true) {
                        return Err(format!("field '{name}' stands twice"));
                    }
                    let Ok(cell) = value.try_into() else {
                        return Err(format!("field '{name}' must be one value, not several"));
                    };
                    row.set(field, &cell.unwrap_or_default());
                }
            }
        }
        (self.keep)(&row)
    }

    /// What stopped the reading: an entry, or else the syntax, of which the
    /// message tells the line.
    fn fault(&mut self, syntax: String) -> Fault {
        let reason = self.reason.take();
        Fault {
            place: reason.is_some().then(|| format!("entry {}", self.entry)),
            reason: reason.unwrap_or(syntax),
        }
    }
}

impl<'de, F, V> DeserializeSeed<'de> for &mut List<'_, F, V>
where
    F: FnMut(&Row<'_>) -> Result<(), String>,
    V: DeserializeOwned + TryInto<Option<String>>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F, V> Visitor<'de> for &mut List<'_, F, V>
where
    F: FnMut(&Row<'_>) -> Result<(), String>,
    V: DeserializeOwned + TryInto<Option<String>>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Entry<V>>()? {
            self.entry += 1;
            if let Err(reason) = self.take(entry) {
                self.reason = Some(reason);
                return Err(de::Error::custom("an entry breaks a rule"));
            }
        }
        Ok(())
    }
}

/// One entry of a list.
enum Entry<V> {
    Map(Vec<(String, V)>),
    /// What YAML takes for a number or a truth value: `007` would be read as
    /// `7`, and `no` as `false`.
    Number(String),
    Text(String),
}

impl<'de, V: DeserializeOwned> Deserialize<'de> for Entry<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor(PhantomData))
    }
}

struct EntryVisitor<V>(PhantomData<V>);

impl<'de, V: DeserializeOwned> Visitor<'de> for EntryVisitor<V> {
    type Value = Entry<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a map of fields")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Entry::Text(text.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Entry::Number(value.to_string()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Entry::Number(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Entry::Number(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Entry::Number(value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut cells = Vec::new();
        while let Some(cell) = map.next_entry()? {
            cells.push(cell);
        }
        Ok(Entry::Map(cells))
    }
}

/// A value of a JSON map as the text that it is written as.
///
/// YAML needs no such thing: read as a string, a plain scalar keeps its text.
#[derive(Deserialize)]
#[serde(untagged)]
enum JsonCell {
    Bool(bool),
    Null(()),
    Number(serde_json::Number),
    Text(String),
    Nested(de::IgnoredAny),
}

impl TryFrom<JsonCell> for Option<String> {
    type Error = NotOneValue;

    fn try_from(cell: JsonCell) -> Result<Self, NotOneValue> {
        match cell {
            JsonCell::Bool(value) => Ok(Some(value.to_string())),
            JsonCell::Null(()) => Ok(None),
            JsonCell::Number(value) => Ok(Some(value.to_string())),
            JsonCell::Text(value) => Ok(Some(value)),
            JsonCell::Nested(_) => Err(NotOneValue),
        }
    }
}

/// A list or a map where a value should be.
struct NotOneValue;
