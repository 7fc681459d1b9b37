//! A file of settings: the fields of the library, and beside them a field for
//! every flag of the command that is no setting of the library.
//!
//! [`document`] reads a file, [`Layered`] puts flags, environment and file over
//! one another. The library gets what is its own, and knows nothing of the rest.

mod document;
mod fields;
mod layered;
mod sources;

pub(crate) use self::layered::{Layered, Layers};
pub(crate) use self::sources::{Own, Shown};

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde_json::{Map, Value};

use self::fields::Flag;
pub(crate) use self::fields::nearest;
use crate::failure::Failure;

/// Largest file of settings.
const BYTES_MAX: u64 = 1 << 20;
/// The bits of a file's mode that let everybody read or change it.
const EVERYBODY: u32 = 0o006;

/// A file that was read.
pub(crate) struct Config {
    path: PathBuf,
    is_everybodys: bool,
    /// What flags would say, by the flag's name; some of it may be secret.
    own: BTreeMap<String, String>,
    /// What is the library's.
    library: Map<String, Value>,
}

impl Config {
    /// Reads a file. A field that nobody knows is an error that names it.
    fn read<A: Layers>(path: &Path, flags: &[Flag]) -> Result<Self, Failure> {
        let named = format!("--config {}", path.display());
        let (text, mode) = read_limited(path, &named)?;
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let refused = |why: String| Failure::Failed(anyhow!("{named}: {why}"));
        let mut fields = document::read(&text, is_json).map_err(|why| {
            // The library tells it in its own words, where it sees it, too.
            let told = A::library(&text, is_json).err();
            refused(told.map_or(why, |error| error.to_string()))
        })?;
        let of_field = |field: &str| {
            let mut aliases = A::ALIASES.iter();
            let alias = aliases.find(|(alias, _)| *alias == field);
            let field = alias.map_or(field, |(_, field)| field);
            flags.iter().find(|flag| flag.field == field)
        };
        let is_text = |field: &str| match of_field(field) {
            Some(flag) => !(flag.is_switch || flag.is_library),
            None => A::TEXTS.contains(&field),
        };
        if !is_json {
            document::keep_texts(&text, &is_text, &mut fields);
        }
        let mut config = Self {
            path: path.to_owned(),
            is_everybodys: mode & EVERYBODY != 0,
            own: BTreeMap::new(),
            library: Map::new(),
        };
        let known = fields::of_settings::<A::Settings>();
        for (field, value) in fields {
            match of_field(&field) {
                Some(_) if value.is_null() => {}
                Some(flag) if !flag.is_library || flag.is_typed_form(&value) => {
                    let text = flag
                        .text(&value)
                        .map_err(|why| config.refused(&field, &why))?;
                    let twice = config.own.insert(flag.id.clone(), text);
                    if twice.is_some() {
                        let why = format!("is '{}' by another name: give one", flag.field);
                        return Err(config.refused(&field, &why));
                    }
                }
                _ if known.contains(&field.as_str()) => {
                    config.library.insert(field, value);
                }
                _ => {
                    let own = flags.iter().map(|flag| flag.field.as_str());
                    let near = nearest(&field, own.chain(known.iter().copied()));
                    let hint = match near {
                        Some(near) => format!("did you mean '{near}'?"),
                        None => "--print-config shows all that there are".to_owned(),
                    };
                    return Err(config.refused(&field, &format!("there is no such field; {hint}")));
                }
            }
        }
        if let Some((one, other)) = A::EITHER
            .iter()
            .find(|(one, other)| config.own.contains_key(*one) && config.has(other))
        {
            let why = format!("stands beside '{other}', which says the same: give one");
            return Err(config.refused(one, &why));
        }
        Ok(config)
    }

    /// What the library has of it.
    pub(crate) fn settings<A: Layers>(&self) -> Result<A::Settings, Failure> {
        let text = serde_json::to_string(&self.library).expect("what was read has a JSON form");
        let read = A::library(&text, true);
        read.map_err(|error| Failure::Failed(anyhow!("--config {}: {error}", self.path.display())))
    }

    /// Its name, without where it lies.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Whether a field of the library, or a flag, stands in it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.library.contains_key(name) || self.own.contains_key(name)
    }

    /// The preset that it names.
    pub(crate) fn preset(&self) -> Option<&str> {
        self.library.get("preset")?.as_str()
    }

    /// A secret stands in it, which needs a file that not everybody can read.
    fn check_secret(&self, field: &str) -> Result<(), Failure> {
        match self.is_everybodys {
            true => {
                let why = "holds a secret, and everybody on this machine may read or change this \
                           file: chmod o-rw it";
                Err(self.refused(field, why))
            }
            false => Ok(()),
        }
    }

    fn refused(&self, field: &str, why: &str) -> Failure {
        let path = self.path.display();
        Failure::Failed(anyhow!("--config {path}: field '{field}': {why}"))
    }
}

/// Reads a small file, which errors call `named`, and gives its mode.
pub(crate) fn read_limited(path: &Path, named: &str) -> Result<(String, u32), Failure> {
    let read = || -> anyhow::Result<(String, u32)> {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode();
        let mut text = String::new();
        let read = file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
        if read as u64 > BYTES_MAX {
            return Err(anyhow!("has more than the {BYTES_MAX} bytes that are read"));
        }
        Ok((text, mode))
    };
    let read = read().with_context(|| named.to_owned());
    read.map_err(Failure::Failed)
}
