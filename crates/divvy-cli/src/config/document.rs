//! A file as its fields: named once each, and text as it was written.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The fields of a file; otherwise what is wrong with it.
pub(super) fn read(text: &str, is_json: bool) -> Result<Map<String, Value>, String> {
    let read = match is_json {
        true => serde_json::from_str(text).map(|Distinct(value)| value),
        false => return yaml(text),
    };
    fields(read.map_err(|error| error.to_string())?)
}

fn yaml(text: &str) -> Result<Map<String, Value>, String> {
    let read: Result<Value, _> = serde_saphyr::from_str(text);
    fields(read.map_err(|error| {
        error
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    })?)
}

fn fields(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        _ => Err("must be named fields".to_owned()),
    }
}

/// Puts what is written in the place of what YAML takes it for, where text is
/// meant: `007` and `off` may be names.
pub(super) fn keep_texts(
    text: &str,
    is_text: &dyn Fn(&str) -> bool,
    fields: &mut Map<String, Value>,
) {
    let seed = AsWritten { is_text, fields };
    // It was read once, and stays as it was then where it cannot be again.
    let _kept =
        serde_saphyr::with_deserializer_from_str(text, |document| seed.deserialize(document));
}

struct AsWritten<'a> {
    is_text: &'a dyn Fn(&str) -> bool,
    fields: &'a mut Map<String, Value>,
}

impl<'de> DeserializeSeed<'de> for AsWritten<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AsWritten<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("named fields")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let is_scalar = |value: &Value| !(value.is_array() || value.is_object() || value.is_null());
        while let Some(name) = map.next_key::<String>()? {
            let value = self.fields.get_mut(&name);
            match value.filter(|_| (self.is_text)(&name)) {
                Some(Value::Array(list)) if list.iter().all(is_scalar) => {
                    let texts: Vec<String> = map.next_value()?;
                    *list = texts.into_iter().map(Value::String).collect();
                }
                Some(value) if is_scalar(value) => *value = Value::String(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A value of JSON in which nothing is named twice.
struct Distinct(Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Each).map(Self)
    }
}

struct Each;

impl<'de> Visitor<'de> for Each {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Value, S::Error> {
        let mut values = Vec::new();
        while let Some(Distinct(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Value, M::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let Distinct(value) = map.next_value()?;
            if fields.contains_key(&name) {
                return Err(M::Error::custom(format_args!("duplicate field '{name}'")));
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_as_it_was_written_and_only_text_is() {
        let text = "user: 007\nbucket: off\nreplicas: 3\ngroups: [1e3, a]\nlist: {a: no}\nnone:\n";
        let mut fields = read(text, false).unwrap();
        let is_text = |name: &str| ["user", "bucket", "groups", "list", "none"].contains(&name);
        keep_texts(text, &is_text, &mut fields);
        let shown = serde_json::to_string(&fields).unwrap();
        let expected = r#"{"bucket":"off","groups":["1e3","a"],"list":{"a":false},"none":null,"replicas":3,"user":"007"}"#;
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_named_twice_is_refused_at_any_depth() {
        for text in [r#"{"a": 1, "a": 2}"#, r#"{"a": {"b": [{"c": 1, "c": 2}]}}"#] {
            assert!(
                read(text, true).unwrap_err().contains("duplicate"),
                "{text}"
            );
        }
        assert!(
            read("a: 1\na: 2\n", false)
                .unwrap_err()
                .contains("duplicate")
        );
        assert!(read("[1]", false).is_err() && read("", false).unwrap().is_empty());
    }
}
