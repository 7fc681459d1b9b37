//! Which fields there are: a command's flags, and what the library reads.

use clap::{ArgAction, Command};
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::Layers;

/// Flags that are no settings.
const NO_SETTINGS: [&str; 5] = ["config", "help", "print_config", "verbose", "version"];

/// A flag that is a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flag {
    /// Its name to the parser of the command line.
    pub(super) id: String,
    /// Its name in files.
    pub(super) field: String,
    /// Its name where it is typed.
    pub(super) long: String,
    /// Whether it is typed without a value.
    pub(super) is_switch: bool,
    /// Whether the library has a field for it, which is told by that.
    pub(super) is_library: bool,
}

impl Flag {
    /// Those of a command, in the order of its help.
    pub(super) fn all<A: Layers>(command: &Command) -> Vec<Self> {
        let command = command.find_subcommand(A::COMMAND);
        let arguments = command.into_iter().flat_map(Command::get_arguments);
        let settings = arguments.filter(|argument| {
            !argument.is_hide_set() && !NO_SETTINGS.contains(&argument.get_id().as_str())
        });
        let flag = |argument: &clap::Arg| {
            let id = argument.get_id().as_str();
            let renamed = A::RENAMED.iter().find(|(flag, _)| *flag == id);
            Self {
                id: id.to_owned(),
                field: renamed.map_or(id, |(_, field)| field).to_owned(),
                long: format!("--{}", argument.get_long().unwrap_or(id)),
                is_switch: matches!(argument.get_action(), ArgAction::SetTrue),
                is_library: A::LIBRARY.contains(&id),
            }
        };
        settings.map(flag).collect()
    }

    /// Whether a value of a file is what could have been typed, although the
    /// library has another form for it.
    pub(super) fn is_typed_form(&self, value: &Value) -> bool {
        self.id == "workloads" && value.is_string()
    }

    /// What would be typed for a value of a file.
    pub(super) fn text(&self, value: &Value) -> Result<String, String> {
        match value {
            Value::Bool(is_on) if self.is_switch => Ok(is_on.to_string()),
            _ if self.is_switch => Err("must be true or false".to_owned()),
            Value::String(text) => Ok(text.clone()),
            Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
            _ => Err("must be text or a number".to_owned()),
        }
    }
}

/// The fields that settings of the library are read from.
pub(super) fn of_settings<S: DeserializeOwned>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // It never gets as far as a value.
    let _refused = S::deserialize(Asked(&mut found));
    found
}

/// Hears which fields are wanted, and has none.
struct Asked<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("there are no values"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The name that was probably meant: one with few other letters.
pub(crate) fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let changes = names.map(|name| (changes(typed, name), name));
    let (changes, name) = changes.min()?;
    let letters = typed.chars().count();
    (changes < letters && changes <= (letters / 3).max(2)).then_some(name)
}

/// How many letters have to be added, left out or replaced (Levenshtein).
fn changes(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (column, expected) in other.chars().enumerate() {
            let replaced = before + usize::from(letter != expected);
            before = row[column + 1];
            row[column + 1] = replaced.min(before + 1).min(row[column] + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found_and_no_other() {
        let names = || ["exec", "workloads", "weight", "lease_ttl"].into_iter();
        for (typed, meant) in [
            ("workloadz", Some("workloads")),
            ("lease_tll", Some("lease_ttl")),
            ("weigth", Some("weight")),
            ("exce", Some("exec")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(nearest(typed, names()), meant, "{typed}");
        }
    }

    #[test]
    fn the_library_says_which_fields_it_reads() {
        let known = of_settings::<divvy::controller::ControllerSettings>();
        assert!(
            ["preset", "lease_ttl", "workloads"]
                .iter()
                .all(|name| known.contains(name))
        );
        let known = of_settings::<divvy::manager::Settings>();
        assert!(
            ["heartbeat_ttl", "grace"]
                .iter()
                .all(|name| known.contains(name))
        );
    }
}
