//! The fields of a request or a step, each taken once and held against its
//! bounds; what is left over is refused.

use std::ops::RangeInclusive;

use divvy_core::Invalid;
use serde_json::{Map, Value};

/// What has not been taken yet.
#[derive(Debug)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    /// What was asked for: all that may be there.
    known: Vec<&'static str>,
}

impl Fields {
    /// The fields of a value, which must be an object.
    pub(crate) fn of(what: &'static str, value: Value) -> Result<Self, Invalid> {
        match value {
            Value::Object(map) => Ok(Self {
                map,
                known: Vec::new(),
            }),
            other => Err(Invalid::new(what, other, "must be an object")),
        }
    }

    /// Takes a field; null is as good as nothing.
    pub(crate) fn take(&mut self, field: &'static str) -> Option<Value> {
        if !self.known.contains(&field) {
            self.known.push(field);
        }
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Whether a field is there, if only as null.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    /// Takes a text.
    pub(crate) fn text(&mut self, field: &'static str) -> Result<Option<String>, Invalid> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Invalid::new(field, other, "must be a text")),
        }
    }

    /// Takes yes or no.
    pub(crate) fn flag(&mut self, field: &'static str) -> Result<Option<bool>, Invalid> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(Invalid::new(field, other, "must be true or false")),
        }
    }

    /// Takes a whole number inside of its bounds.
    pub(crate) fn count(
        &mut self,
        field: &'static str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Invalid> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        match value.as_u64().filter(|count| bounds.contains(count)) {
            Some(count) => Ok(Some(count)),
            None => {
                let (least, most) = (bounds.start(), bounds.end());
                let rule = format!("must be a whole number in {least}..={most}");
                Err(Invalid::new(field, value, rule))
            }
        }
    }

    /// Takes a number inside of its bounds.
    pub(crate) fn number(
        &mut self,
        field: &'static str,
        bounds: RangeInclusive<f64>,
    ) -> Result<Option<f64>, Invalid> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        match value.as_f64().filter(|number| bounds.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (least, most) = (bounds.start(), bounds.end());
                let rule = format!("must be a number in {least}..={most}");
                Err(Invalid::new(field, value, rule))
            }
        }
    }

    /// Takes one of several words.
    pub(crate) fn word<T: Copy>(
        &mut self,
        field: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, Invalid> {
        let Some(text) = self.text(field)? else {
            return Ok(None);
        };
        let found = words.iter().find(|(word, _)| *word == text);
        match found {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                let rule = format!("must be one of {}", known.join(", "));
                Err(Invalid::new(field, text, rule))
            }
        }
    }

    /// Whether all was taken.
    pub(crate) fn finish(self) -> Result<(), Invalid> {
        self.finish_beside(&[])
    }

    /// Whether all was taken, where these may be there besides.
    pub(crate) fn finish_beside(self, others: &[&'static str]) -> Result<(), Invalid> {
        let Some(unknown) = self.map.keys().next() else {
            return Ok(());
        };
        let known = self.known.iter().chain(others);
        let known: Vec<&str> = known.copied().collect();
        let rule = match known.is_empty() {
            true => "is not known here, where there are no fields".to_owned(),
            false => format!("is not known here: known are {}", known.join(", ")),
        };
        Err(Invalid::new("field", unknown, rule))
    }
}

/// What a field must have.
pub(crate) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Invalid> {
    value.ok_or_else(|| Invalid::new(field, "nothing", "must be given"))
}
