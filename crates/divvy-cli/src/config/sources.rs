//! The command's own settings, each with where it comes from and what of it may
//! be shown.

use clap::ArgMatches;
use divvy::store::StoreUrl;
use serde_json::Value;

use super::fields::Flag;
use crate::args::WEBHOOK_VARIABLE;
use crate::webhook;

/// One of the command's own settings.
pub(crate) struct Own {
    name: String,
    /// What it is, with its secret; nothing where nothing is set.
    value: Option<Value>,
    origin: String,
    /// What it is called where it cannot be shown whole.
    shown_as: Option<String>,
}

/// What can be shown of a setting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// All of it, so that it can be read back.
    Whole(&'a Value),
    /// Something that people understand, and nothing reads.
    Told(&'a str),
}

impl Own {
    /// A flag as it is in force; of an address `written` is what stands in
    /// the environment or a file.
    pub(super) fn new(
        flag: &Flag,
        matches: &ArgMatches,
        written: Option<String>,
        origin: String,
    ) -> Self {
        let written = written.filter(|_| matches!(flag.id.as_str(), "store" | "webhook"));
        let value = match written {
            Some(text) => Some(Value::String(text)),
            None => in_force(flag, matches),
        };
        let address = value.as_ref().and_then(Value::as_str);
        let shown_as = address.and_then(|text| match flag.id.as_str() {
            "store" => store_shown(text),
            // What everybody can read is no secret; elsewhere its path may be one.
            "webhook" if webhook::has_secret(text) || origin == WEBHOOK_VARIABLE => {
                Some(webhook::origin(text))
            }
            _ => None,
        });
        Self {
            name: flag.field.clone(),
            value,
            origin,
            shown_as,
        }
    }

    /// Its name in files.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    pub(crate) fn shown(&self) -> Shown<'_> {
        match (&self.shown_as, &self.value) {
            (Some(shown), _) => Shown::Told(shown),
            (None, Some(value)) => Shown::Whole(value),
            (None, None) => Shown::Told("none"),
        }
    }

    /// Where it comes from.
    pub(crate) fn origin(&self) -> String {
        match (&self.shown_as, &self.value) {
            (Some(_), Some(_)) => format!("{}, not shown whole", self.origin),
            _ => self.origin.clone(),
        }
    }

    /// What people are told of a setting that is not set.
    pub(crate) fn tell(&mut self, what: &str) {
        if self.value.is_none() {
            self.shown_as = Some(what.to_owned());
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// What the parser of the command line has.
fn in_force(flag: &Flag, matches: &ArgMatches) -> Option<Value> {
    if flag.is_switch {
        return Some(matches.get_flag(&flag.id).into());
    }
    let mut texts = matches.get_raw(&flag.id)?;
    let text = texts.next()?.to_string_lossy().into_owned();
    let number = text.parse::<u64>().ok();
    // All others are text, whatever they look like.
    let number = number.filter(|_| flag.id == "replicas");
    Some(number.map_or_else(|| text.into(), Value::from))
}

/// The address of a store where it cannot be shown whole.
fn store_shown(text: &str) -> Option<String> {
    match text.parse::<StoreUrl>() {
        Ok(url) => url.has_secret().then(|| url.to_string()),
        Err(_) => Some("***".to_owned()),
    }
}
