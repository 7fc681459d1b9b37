//! Settings as they are in force, each with where it comes from: YAML that can
//! be read back.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use divvy::manager::parse_span;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::{Config, Own, Shown};
use crate::failure::Failure;

/// Words that YAML takes for something else than text.
const NO_TEXT: [&str; 9] = [
    "true", "false", "null", "yes", "no", "on", "off", "nan", "inf",
];

/// Where settings of the library come from.
pub(crate) struct Origins<'a> {
    file: Option<&'a Config>,
    /// The preset, where one was chosen.
    preset: Option<String>,
    /// Fields that a flag has set.
    flags: BTreeMap<&'static str, &'static str>,
}

impl<'a> Origins<'a> {
    /// Those of a file, and of a preset that was typed.
    pub(crate) fn new(file: Option<&'a Config>, preset: Option<&str>) -> Self {
        let preset = preset.or_else(|| file?.preset());
        Self {
            file,
            preset: preset.map(str::to_owned),
            flags: BTreeMap::new(),
        }
    }

    /// What `--grace` has raised, of the deadline of stops and the time for
    /// shutting down as they were before it and are now.
    pub(crate) fn raised(&mut self, is_typed: bool, before: [Duration; 2], now: [Duration; 2]) {
        let why = match is_typed {
            true => "--grace",
            false => "follows from the grace of commands",
        };
        self.flag("stop_deadline", why, before[0] != now[0]);
        self.flag("shutdown_timeout", why, before[1] != now[1]);
    }

    /// The preset that was chosen.
    pub(crate) fn preset(&self) -> Option<&str> {
        self.preset.as_deref()
    }

    /// A flag has set this field, if it was given.
    pub(crate) fn flag(&mut self, field: &'static str, flag: &'static str, is_given: bool) {
        if is_given {
            self.flags.insert(field, flag);
        }
    }

    /// Where the value of a field comes from; `unset` is what it would be by
    /// the preset, and by no preset.
    fn of(&self, field: &str, value: &Value, unset: [Option<&Value>; 2]) -> String {
        let [by_preset, by_default] = unset;
        if let Some(flag) = self.flags.get(field) {
            return (*flag).to_owned();
        }
        match (self.file, &self.preset) {
            (Some(file), _) if file.has(field) => file.name(),
            (_, Some(preset)) if by_preset == Some(value) && by_preset != by_default => {
                format!("preset {preset}")
            }
            (Some(file), _) if by_preset != Some(value) => {
                format!("follows from others in {}", file.name())
            }
            _ => "default".to_owned(),
        }
    }

    /// Prints the command's own settings, and those of the library but
    /// `hidden` ones. What is for people alone is a comment.
    pub(crate) fn print<S: Serialize>(
        &self,
        out: &mut dyn Write,
        own: &[Own],
        [settings, by_preset, by_default]: [&S; 3],
        hidden: &[&str],
    ) -> Result<(), Failure> {
        let [settings, by_preset, by_default] =
            [fields(settings)?, fields(by_preset)?, fields(by_default)?];
        let own = own.iter().map(|own| {
            let line = match own.shown() {
                Shown::Whole(value) => format!("{}: {}", own.name(), shown(value)),
                Shown::Told(words) => format!("# {}: {words}", own.name()),
            };
            (line, own.origin())
        });
        let mut lines: Vec<(String, String)> = own.collect();
        // What a preset says stands in the fields themselves.
        let is_shown = |name: &str| name != "preset" && !hidden.contains(&name);
        for (field, value) in settings.iter().filter(|(name, _)| is_shown(name)) {
            if value.is_null() {
                lines.push((format!("# {field}: none"), "default".to_owned()));
                continue;
            }
            let unset = [by_preset.get(field), by_default.get(field)];
            let origin = self.of(field, value, unset);
            lines.push((format!("{field}: {}", shown(value)), origin));
        }
        let width = lines.iter().map(|(line, _)| line.chars().count()).max();
        let width = width.unwrap_or(0).min(60);
        for (line, origin) in lines {
            writeln!(out, "{line:width$}  # {origin}").map_err(Failure::output)?;
        }
        Ok(())
    }
}

/// The names of settings that differ, as a file has them.
pub(crate) fn differing(one: &impl Serialize, other: &impl Serialize) -> Vec<String> {
    let shown = |settings: serde_json::Result<Value>| settings.expect("settings have a JSON form");
    let one = shown(serde_json::to_value(one));
    let other = shown(serde_json::to_value(other));
    let names = [&one, &other].into_iter().filter_map(Value::as_object);
    let names: BTreeSet<&String> = names.flat_map(Map::keys).collect();
    let differs = |name: &&&String| one.get(name.as_str()) != other.get(name.as_str());
    names
        .iter()
        .filter(differs)
        .map(|name| (*name).clone())
        .collect()
}

/// What is said of settings that were read again: the names of those that were
/// taken, and of those that were left as they are.
pub(crate) fn told(taken: &[String], left: &[String]) -> String {
    let mut told = match taken.is_empty() {
        true => "nothing has changed that can be taken while it runs".to_owned(),
        false => taken.join(", "),
    };
    if !left.is_empty() {
        told += &format!("; these take a restart: {}", left.join(", "));
    }
    told
}

fn fields(settings: &impl Serialize) -> Result<Map<String, Value>, Failure> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(Failure::Failed(anyhow::anyhow!("no fields: {other}"))),
        Err(error) => Err(Failure::Failed(error.into())),
    }
}

/// A value as YAML has it, on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = fields
                .map(|(name, value)| format!("{}: {}", shown(&name.as_str().into()), shown(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(shown).collect();
            format!("[{}]", values.join(", "))
        }
        // JSON is YAML.
        other => other.to_string(),
    }
}

/// Whether a text needs no quotes.
fn is_plain(text: &str) -> bool {
    let is_word = text
        .chars()
        .all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '_'))
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() > 1;
    is_word && !NO_TEXT.contains(&text) || parse_span("time", text).is_ok()
}

#[cfg(test)]
mod tests {
    use divvy::controller::ControllerSettings;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_is_read_back_as_it_was() {
        for value in [
            json!("10s"),
            json!("weighted-consistent-hash"),
            json!("off"),
            json!("1e3"),
            json!("a: b # c"),
            json!("'\"\\\n"),
            json!(""),
            json!("-"),
            json!(1.5),
            json!({"demo": 8, "on": {"units": 3, "max_per_worker": 1}}),
            json!(["a", "1", true]),
        ] {
            let text = format!("field: {}  # default\n", shown(&value));
            let read: Map<String, Value> = serde_saphyr::from_str(&text).unwrap();
            assert_eq!(read["field"], value, "{text}");
        }
    }

    #[test]
    fn settings_that_differ_are_named_as_a_file_has_them() {
        let one = ControllerSettings::default();
        assert!(differing(&one, &one).is_empty());
        let text = r#"{"worker": "a", "lease_ttl": "20s", "workloads": {"demo": 3}}"#;
        let other = ControllerSettings::from_json(text).unwrap();
        let expected = [
            "heartbeat_interval",
            "heartbeat_ttl",
            "lease_ttl",
            "renew_interval",
            "worker",
            "workloads",
        ];
        assert_eq!(differing(&one, &other), expected);
    }
}
