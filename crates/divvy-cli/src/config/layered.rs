//! Flags over the environment over a file: what is in force of a command's own
//! settings.

use std::ffi::OsString;
use std::path::Path;

use anyhow::anyhow;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches};
use divvy::store::StoreUrl;
use serde::de::DeserializeOwned;

use super::Config;
use super::fields::Flag;
use super::sources::Own;
use crate::args::{Args, STORE_VARIABLE, WEBHOOK_VARIABLE};
use crate::failure::Failure;
use crate::webhook;

/// A command whose flags can stand in a file, too.
pub(crate) trait Layers: FromArgMatches + Sized {
    /// What the library reads of that file.
    type Settings: DeserializeOwned;
    /// The command.
    const COMMAND: &'static str;
    /// Flags that are called something else in a file, where the library means
    /// another thing by their name.
    const RENAMED: &'static [(&'static str, &'static str)];
    /// What fields were called before, and are called now.
    const ALIASES: &'static [(&'static str, &'static str)];
    /// Flags that set fields of the library.
    const LIBRARY: &'static [&'static str];
    /// Fields of the library that are text, whatever they look like.
    const TEXTS: &'static [&'static str];
    /// Flags, and what says the same in a file.
    const EITHER: &'static [(&'static str, &'static str)];

    /// The file that was named.
    fn config(&self) -> Option<&Path>;

    /// The store and the webhook, which may hold secrets: those of a file are
    /// never arguments.
    fn addresses(&mut self) -> (&mut Option<StoreUrl>, &mut Option<String>);

    /// Reads settings of the library.
    fn library(text: &str, is_json: bool) -> Result<Self::Settings, divvy::Error>;
}

/// A command as it was typed, with what the environment and a file say beside.
pub(crate) struct Layered<A> {
    /// All of it.
    pub(crate) args: A,
    pub(crate) config: Option<Config>,
    /// Each of the command's own settings, with where it comes from.
    pub(crate) own: Vec<Own>,
    typed: ArgMatches,
}

impl<A: Layers> Layered<A> {
    /// Reads the arguments of this process, and the file that they name.
    pub(crate) fn read() -> Result<Self, Failure> {
        Self::of(std::env::args_os().collect())
    }

    pub(super) fn of(mut words: Vec<OsString>) -> Result<Self, Failure> {
        let mut command = Args::command();
        command.build();
        let flags = Flag::all::<A>(&command);
        let typed = parsed::<A>(&words).map_err(usage)?;
        let config = A::from_arg_matches(&typed).map_err(usage)?;
        let config = config.config();
        let config = config.map(|path| Config::read::<A>(path, &flags));
        let config = config.transpose()?;
        let layers = Chosen {
            typed: &typed,
            config: config.as_ref(),
        };
        for flag in &flags {
            if let Some(text) = layers.in_file(&flag.id) {
                words.extend(layers.word::<A>(flag, text)?);
            }
        }
        let matches = parsed::<A>(&words).map_err(|error| layers.contradiction(&error))?;
        let mut args = A::from_arg_matches(&matches).map_err(usage)?;
        layers.fill_addresses(&mut args)?;
        let own = flags.iter().filter(|flag| !flag.is_library);
        let own = own.map(|flag| {
            let text = layers.address(&flag.id);
            Own::new(flag, &matches, text, layers.source(flag))
        });
        let own = own.collect();
        Ok(Self {
            args,
            own,
            config,
            typed,
        })
    }

    /// Whether a flag was typed.
    pub(crate) fn is_typed(&self, id: &str) -> bool {
        is_typed(&self.typed, id)
    }

    /// The names of the command's own settings that differ, as a file has
    /// them.
    pub(crate) fn differing(&self, other: &Self) -> Vec<String> {
        let pairs = self.own.iter().zip(&other.own);
        let differing = pairs.filter(|(one, other)| !one.is_same(other));
        differing.map(|(one, _)| one.name().to_owned()).collect()
    }
}

/// What was typed and what stands in a file, and which of it counts.
struct Chosen<'a> {
    typed: &'a ArgMatches,
    config: Option<&'a Config>,
}

impl Chosen<'_> {
    /// What a file says of a flag that nothing above it has set.
    fn in_file(&self, id: &str) -> Option<&str> {
        let is_over = match id {
            // Another way to work on partitions was asked for.
            "exec" => self.is_typed("webhook") || self.environment("webhook").is_some(),
            "webhook" | "webhook_secret_file" => self.is_typed("exec"),
            "return_within" => self.is_typed("on_stop"),
            _ => false,
        };
        if is_over || self.is_typed(id) || self.environment(id).is_some() {
            return None;
        }
        self.config?.own.get(id).map(String::as_str)
    }

    fn is_typed(&self, id: &str) -> bool {
        is_typed(self.typed, id)
    }

    /// The variable that has what a flag would say, where it counts.
    fn environment(&self, id: &str) -> Option<&'static str> {
        let variable = match id {
            "store" => STORE_VARIABLE,
            "webhook" if !self.is_typed("exec") => WEBHOOK_VARIABLE,
            _ => return None,
        };
        let counts = !self.is_typed(id) && std::env::var_os(variable).is_some();
        counts.then_some(variable)
    }

    /// What would have been typed for a field of a file, unless it may hold a
    /// secret.
    fn word<A: Layers>(&self, flag: &Flag, text: &str) -> Result<Option<OsString>, Failure> {
        let word = match (flag.id.as_str(), flag.is_switch) {
            ("store" | "webhook", _) => return Ok(None),
            (_, true) if text == "true" => flag.long.clone(),
            (_, true) => return Ok(None),
            (_, false) => format!("{}={text}", flag.long),
        };
        let alone = [
            OsString::from("divvy"),
            A::COMMAND.into(),
            word.clone().into(),
        ];
        match parsed::<A>(&alone) {
            Err(error) if is_about_value(&error) => {
                let why = told(&error);
                Err(self.refused(&flag.field, &why))
            }
            // What it needs beside it may be there.
            _ => Ok(Some(word.into())),
        }
    }

    /// Puts the addresses of the environment and the file where those that
    /// are typed stand.
    fn fill_addresses<A: Layers>(&self, args: &mut A) -> Result<(), Failure> {
        let (store, webhook) = args.addresses();
        if let (Some(text), Some(config)) = (self.in_file("store"), self.config) {
            let url: StoreUrl = text
                .parse()
                .map_err(|error: divvy::Invalid| config.refused("store", &error.to_string()))?;
            if url.has_secret() {
                config.check_secret("store")?;
            }
            *store = Some(url);
        }
        if let Some(variable) = self.environment("webhook") {
            let text = std::env::var(variable);
            let text = text.map_err(|_error| Failure::Usage(format!("{variable} is not UTF-8")));
            *webhook = Some(text?);
        }
        if let (Some(text), Some(config)) = (self.in_file("webhook"), self.config) {
            if self.in_file("exec").is_some() {
                let why = "stands beside 'exec': partitions are worked on by one of them";
                return Err(config.refused("webhook", why));
            }
            if webhook::has_secret(text) {
                config.check_secret("webhook")?;
            }
            *webhook = Some(text.to_owned());
        }
        Ok(())
    }

    /// An address, as it was written.
    fn address(&self, id: &str) -> Option<String> {
        match self.environment(id) {
            Some(variable) => std::env::var(variable).ok(),
            None => self.in_file(id).map(str::to_owned),
        }
    }

    /// Where the value of a flag comes from.
    fn source(&self, flag: &Flag) -> String {
        match (self.environment(&flag.id), self.config) {
            _ if self.is_typed(&flag.id) => flag.long.clone(),
            (Some(variable), _) => variable.to_owned(),
            (None, Some(config)) if self.in_file(&flag.id).is_some() => config.name(),
            _ => "default".to_owned(),
        }
    }

    /// What flags and fields say does not fit together.
    fn contradiction(&self, error: &clap::Error) -> Failure {
        let config = self.config.map(|config| config.path.display().to_string());
        let config = config.unwrap_or_default();
        Failure::Failed(anyhow!("--config {config}: {}", told(error)))
    }

    fn refused(&self, field: &str, why: &str) -> Failure {
        match self.config {
            Some(config) => config.refused(field, why),
            None => Failure::Usage(format!("{field}: {why}")),
        }
    }
}

fn is_typed(typed: &ArgMatches, id: &str) -> bool {
    let is_known = typed.try_contains_id(id).is_ok();
    is_known && typed.value_source(id) == Some(ValueSource::CommandLine)
}

fn parsed<A: Layers>(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let matches = Args::command().try_get_matches_from(words)?;
    match matches.subcommand() {
        Some((name, matches)) if name == A::COMMAND => Ok(matches.clone()),
        _ => Err(clap::Error::new(ErrorKind::InvalidSubcommand)),
    }
}

/// Whether a value is wrong, and not what it stands beside.
fn is_about_value(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
    )
}

fn usage(error: clap::Error) -> Failure {
    Failure::Usage(told(&error))
}

/// What the parser of the command line says, in one line.
fn told(error: &clap::Error) -> String {
    if let Some(reason) = std::error::Error::source(error) {
        return reason.to_string();
    }
    let text = error.to_string();
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}
