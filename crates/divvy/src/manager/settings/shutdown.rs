//! How a worker leaves, as settings have it: `leave`, or `{return: 30s}`.

use std::fmt;

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use super::span::Span;

const FORMS: &str = "leave or {return: 30s}";

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShutdownForm {
    Leave,
    Return(Span),
}

impl<'de> Deserialize<'de> for ShutdownForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Form)
    }
}

/// By hand, because a derived one speaks of variants.
struct Form;

impl<'de> Visitor<'de> for Form {
    type Value = ShutdownForm;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMS)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ShutdownForm, E> {
        match text {
            "leave" => Ok(ShutdownForm::Leave),
            "return" => Err(E::custom(
                "'return' needs how long partitions are kept: {return: 30s}",
            )),
            _ => Err(E::custom(format_args!("'{text}': must be {FORMS}"))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ShutdownForm, A::Error> {
        let wrong = || de::Error::custom(format_args!("must be {FORMS}"));
        let name: String = map.next_key()?.ok_or_else(wrong)?;
        if name != "return" {
            return Err(wrong());
        }
        let within = map.next_value()?;
        match map.next_key::<String>()? {
            Some(_more) => Err(wrong()),
            None => Ok(ShutdownForm::Return(within)),
        }
    }
}
