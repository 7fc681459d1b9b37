//! Times as settings have them: `500ms`, `30s`, `1m30s`, `24h`.

use std::fmt;
use std::time::Duration;

use divvy_core::{Invalid, Spelled};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// Units, longest first.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A time as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

/// Reads a time: whole numbers with the units `h`, `m`, `s` and `ms`, longest
/// first, as in `1m30s`. `field` is what an error names.
///
/// ```
/// use divvy::manager::parse_span;
/// use std::time::Duration;
///
/// assert_eq!(parse_span("ttl", "1m30s")?, Duration::from_secs(90));
/// assert!(parse_span("ttl", "30").is_err());
/// # Ok::<(), divvy::Invalid>(())
/// ```
pub fn parse_span(field: &'static str, text: &str) -> Result<Duration, Invalid> {
    let wrong = || Invalid::new(field, text, "must be a time such as 500ms, 30s or 1m30s");
    let mut total: u64 = 0;
    let mut rest = text;
    let mut allowed = &UNITS[..];
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_error| wrong())?;
        rest = &rest[digits..];
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let at = allowed.iter().position(|(unit, _)| *unit == &rest[..end]);
        let at = at.ok_or_else(wrong)?;
        let part = number.checked_mul(allowed[at].1);
        total = part
            .and_then(|part| total.checked_add(part))
            .ok_or_else(wrong)?;
        allowed = &allowed[at + 1..];
        rest = &rest[end..];
    }
    match text.is_empty() {
        true => Err(wrong()),
        false => Ok(Duration::from_millis(total)),
    }
}

impl Span {
    /// As exactly as people are told of times: to a tenth of a second.
    pub(crate) fn rounded_up(span: Duration) -> Self {
        let tenths = u32::try_from(span.as_millis().div_ceil(100));
        Self(Duration::from_millis(100) * tenths.unwrap_or(u32::MAX))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self(span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Spelled(self.0).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsText)
    }
}

/// Takes text; a bare number is a time without its unit.
struct AsText;

impl Visitor<'_> for AsText {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as 500ms, 30s or 1m30s")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        parse_span("time", text).map(Span).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Span, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Span, E> {
        self.visit_str(&number.to_string())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_the_same_way() {
        for (text, ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("24h", 86_400_000),
            ("1h1m1s1ms", 3_661_001),
        ] {
            let span = parse_span("time", text).unwrap();
            assert_eq!(span.as_millis(), ms, "{text}");
            assert_eq!(Span(span).to_string(), text);
        }
        assert_eq!(parse_span("time", "90s").unwrap().as_secs(), 90);
    }

    #[test]
    fn anything_else_is_refused() {
        let texts = [
            "",
            "30",
            "s",
            "-1s",
            "1.5s",
            "1 s",
            "30s1m",
            "1s1s",
            "1d",
            "1sec",
            "s1",
            "1s ",
            "99999999999999999999h",
            "5124095576031h",
        ];
        for text in texts {
            let told = parse_span("ttl", text).map_err(|error| error.to_string());
            assert!(told.is_err_and(|told| told.starts_with("ttl '")), "{text}");
        }
    }
}
