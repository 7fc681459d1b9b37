//! Settings as they are in force, each with where it comes from: YAML that can
//! be read back.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use divvy::manager::parse_span;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::commands::worker::read_limited;
use crate::failure::Failure;

/// Words that YAML takes for something else than text.
const NO_TEXT: [&str; 9] = [
    "true", "false", "null", "yes", "no", "on", "off", "nan", "inf",
];

/// Where settings come from.
#[derive(Debug)]
pub(crate) struct Origins {
    /// What stands in the file, and what it is called.
    file: Option<(String, Map<String, Value>)>,
    /// The preset, where one was chosen.
    preset: Option<String>,
    /// Fields that a flag has set.
    flags: BTreeMap<&'static str, &'static str>,
}

impl Origins {
    /// Those of a file and a preset that were named, the file being read.
    pub(crate) fn read(config: Option<&Path>, preset: Option<&str>) -> Result<Self, Failure> {
        let preset = preset.map(str::to_owned);
        let Some(path) = config else {
            return Ok(Self::new(None, preset));
        };
        let text = read_limited(path, "--config")?;
        Ok(Self::new(Some((path, &text)), preset))
    }

    /// What `--grace` has raised, of the deadline of stops and the time for
    /// shutting down as they were before it and are now.
    pub(crate) fn raised(&mut self, before: [Duration; 2], now: [Duration; 2]) {
        self.flag("stop_deadline", "--grace", before[0] != now[0]);
        self.flag("shutdown_timeout", "--grace", before[1] != now[1]);
    }

    fn new(file: Option<(&Path, &str)>, preset: Option<String>) -> Self {
        let file = file.map(|(path, text)| {
            let name = path.file_name().unwrap_or(path.as_os_str());
            // Read before, by whoever knows its fields.
            let read: Option<Map<String, Value>> =
                match path.extension().is_some_and(|ending| ending == "json") {
                    true => serde_json::from_str(text).ok(),
                    false => serde_saphyr::from_str(text).ok(),
                };
            (
                name.to_string_lossy().into_owned(),
                read.unwrap_or_default(),
            )
        });
        let in_file = file.as_ref().and_then(|(_, fields)| fields.get("preset"));
        let preset = preset.or_else(|| Some(in_file?.as_str()?.to_owned()));
        Self {
            file,
            preset,
            flags: BTreeMap::new(),
        }
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
        match (&self.file, &self.preset) {
            (Some((name, fields)), _) if fields.contains_key(field) => name.clone(),
            (_, Some(preset)) if by_preset == Some(value) && by_preset != by_default => {
                format!("preset {preset}")
            }
            (Some((name, _)), _) if by_preset != Some(value) => {
                format!("follows from others in {name}")
            }
            _ => "default".to_owned(),
        }
    }

    /// Prints settings. What stands above them is for people alone: a name, a
    /// value and where it comes from.
    pub(crate) fn print<S: Serialize>(
        &self,
        out: &mut dyn Write,
        above: &[(&str, String, &str)],
        [settings, by_preset, by_default]: [&S; 3],
    ) -> Result<(), Failure> {
        let [settings, by_preset, by_default] =
            [fields(settings)?, fields(by_preset)?, fields(by_default)?];
        let mut lines: Vec<(String, String)> = above
            .iter()
            .map(|(name, value, origin)| (format!("# {name}: {value}"), (*origin).to_owned()))
            .collect();
        for (field, value) in settings.iter().filter(|(_, value)| !value.is_null()) {
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
    use super::*;
    use serde_json::json;

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
}
