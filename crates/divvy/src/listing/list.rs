//! A list of maps, or of plain strings: what JSON and YAML have in common.
//!
//! Entries are handed on one by one and checked field by field, so that no
//! more is in memory than the cells of one entry.

use std::fmt;

use divvy_core::Invalid;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Fault;
use super::excerpt;
use super::row::{Field, Place, Row, field_named};

/// What to say of a list or a map where a value should be.
pub(super) const ONE_VALUE: &str = "must be one value, not several";
/// What to say of a number or a truth value where a name should be: `007`
/// would be read as `7`, `1e2` as `100`, and `no` as `false`.
const NOT_A_NAME: &str = "is a number or a truth value; put quotes around a name";

/// How the value of a field is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As what it is: JSON has numbers, truth values and strings.
    Typed,
    /// As the text that is written, which YAML keeps of a plain scalar.
    Written,
}

/// A list that is being read, each entry of which is handed to `keep`.
pub(super) struct List<'a, F> {
    fields: &'a [Field],
    reading: Reading,
    keep: F,
    /// The number of the entry at hand, from 1.
    entry: usize,
    /// What is wrong with it, where it is not the syntax.
    reason: Option<String>,
}

impl<'a, F> List<'a, F>
where
    F: FnMut(&Row<'_>) -> Result<(), String>,
{
    pub(super) fn new(fields: &'a [Field], reading: Reading, keep: F) -> Self {
        Self {
            fields,
            reading,
            keep,
            entry: 0,
            reason: None,
        }
    }

    /// What stopped the reading: an entry, or else the syntax.
    pub(super) fn fault(self, syntax: impl FnOnce() -> Fault) -> Fault {
        match self.reason {
            Some(reason) => Fault {
                place: Some(format!("entry {}", self.entry)),
                reason,
            },
            None => syntax(),
        }
    }
}

impl<'de, F> DeserializeSeed<'de> for &mut List<'_, F>
where
    F: FnMut(&Row<'_>) -> Result<(), String>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F> Visitor<'de> for &mut List<'_, F>
where
    F: FnMut(&Row<'_>) -> Result<(), String>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        loop {
            self.entry += 1;
            let mut row = Row::new(self.fields, Place::Entry(self.entry));
            let entry = Entry {
                row: &mut row,
                reading: self.reading,
                reason: &mut self.reason,
            };
            if entries.next_element_seed(entry)?.is_none() {
                return Ok(());
            }
            if let Err(reason) = (self.keep)(&row) {
                return Err(refused(&mut self.reason, reason));
            }
        }
    }
}

/// Notes what is wrong, and gives the error that stops the reading.
fn refused<E: de::Error>(slot: &mut Option<String>, reason: String) -> E {
    *slot = Some(reason);
    E::custom("an entry breaks a rule")
}

/// One entry of a list, which is read into a row.
struct Entry<'a, 'f> {
    row: &'a mut Row<'f>,
    reading: Reading,
    reason: &'a mut Option<String>,
}

impl Entry<'_, '_> {
    fn no_name<E: de::Error>(self, shown: impl fmt::Display) -> E {
        let reason = Invalid::new("entry", shown, NOT_A_NAME).to_string();
        refused(self.reason, reason)
    }
}

impl<'de> DeserializeSeed<'de> for Entry<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a map of fields")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.row.set(0, text);
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        Err(self.no_name(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        Err(self.no_name(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        Err(self.no_name(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        Err(self.no_name(value))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = vec![false; self.row.fields().len()];
        loop {
            let key = Key {
                fields: self.row.fields(),
                seen: &mut seen,
                reason: &mut *self.reason,
            };
            let Some(field) = map.next_key_seed(key)? else {
                return Ok(());
            };
            map.next_value_seed(Cell {
                row: &mut *self.row,
                field,
                reading: self.reading,
                reason: &mut *self.reason,
            })?;
        }
    }
}

/// The name of a field that stands for the first time.
struct Key<'a, 'f> {
    fields: &'f [Field],
    seen: &'a mut [bool],
    reason: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<usize, E> {
        match field_named("field", name, self.fields) {
            Ok(field) if self.seen[field] => Err(refused(self.reason, twice(name))),
            Ok(field) => {
                self.seen[field] = true;
                Ok(field)
            }
            Err(reason) => Err(refused(self.reason, reason)),
        }
    }
}

/// What to say of a field that an entry has twice.
pub(super) fn twice(name: &str) -> String {
    format!("field '{}' stands twice", excerpt(name))
}

/// The value of a field, which is read into a row.
struct Cell<'a, 'f> {
    row: &'a mut Row<'f>,
    field: usize,
    reading: Reading,
    reason: &'a mut Option<String>,
}

impl Cell<'_, '_> {
    /// Takes a number or a truth value, where the field is not for names.
    fn set_value<E: de::Error>(self, text: &str) -> Result<(), E> {
        let Field { name, is_name, .. } = self.row.fields()[self.field];
        if is_name {
            let reason = Invalid::new(name, text, NOT_A_NAME).to_string();
            return Err(refused(self.reason, reason));
        }
        self.row.set(self.field, text);
        Ok(())
    }

    fn several<E: de::Error>(self) -> E {
        let name = self.row.fields()[self.field].name;
        refused(self.reason, format!("field '{name}' {ONE_VALUE}"))
    }
}

impl<'de> DeserializeSeed<'de> for Cell<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.reading {
            Reading::Typed => deserializer.deserialize_any(self),
            Reading::Written => deserializer.deserialize_option(self),
        }
    }
}

impl<'de> Visitor<'de> for Cell<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.row.set(self.field, text);
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.set_value(&value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.set_value(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.set_value(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        // With its point, as it is written.
        self.set_value(&format!("{value:?}"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.several())
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.several())
    }
}
