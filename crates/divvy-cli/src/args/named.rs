//! Values that are one of a few names, read by the type that they are of.

use std::error::Error;
use std::ffi::OsStr;
use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::{PossibleValue, TypedValueParser};
use divvy::observer::Mode;
use divvy::{KeyScheme, SchemeName, StrategyName};

/// Reads a name as its type does, whose errors name field, value and bound, and
/// tells the help and completions which names there are.
#[derive(Debug, Clone)]
pub(super) struct Named<T, E> {
    names: Vec<PossibleValue>,
    read: fn(&str) -> Result<T, E>,
}

impl<T, E> Named<T, E> {
    pub(super) fn new(
        names: impl IntoIterator<Item = impl Into<PossibleValue>>,
        read: fn(&str) -> Result<T, E>,
    ) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            read,
        }
    }
}

impl<T, E> TypedValueParser for Named<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync>> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().cloned()))
    }
}

/// A strategy.
pub(super) fn strategy() -> Named<StrategyName, divvy::Error> {
    let names = StrategyName::ALL.map(StrategyName::as_str);
    Named::new(names, StrategyName::from_str)
}

/// How scores come about.
pub(super) fn scheme() -> Named<SchemeName, divvy::Error> {
    let names = SchemeName::ALL.map(SchemeName::as_str);
    Named::new(names, SchemeName::from_str)
}

/// How a key becomes a number.
pub(super) fn key_scheme() -> Named<KeyScheme, divvy::Error> {
    let names = KeyScheme::ALL.map(KeyScheme::name);
    Named::new(names, KeyScheme::from_str)
}

/// The mode of a live cluster.
pub(super) fn mode() -> Named<Mode, divvy::Invalid> {
    let names = super::Mode::value_variants().iter();
    Named::new(
        names.filter_map(ValueEnum::to_possible_value),
        Mode::from_str,
    )
}
