//! Files of workers and partitions: size and form are checked before anything
//! is read into sets.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use divvy::Partitions;
use divvy::listing::{self, Form, LIST_BYTES_MAX, Row, Shape};

use crate::failure::Failure;

/// What stands for stdin in place of a file.
const STDIN: &str = "-";

/// A file that was named, and the flag that names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    flag: &'static str,
    path: &'a str,
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} @{}", self.flag, self.path)
    }
}

impl<'a> Source<'a> {
    /// The file that the value of a flag names, where it does; `-` is stdin.
    pub(super) fn of(flag: &'static str, value: &'a str) -> Option<Self> {
        let path = match value {
            STDIN => value,
            value => value.strip_prefix('@')?,
        };
        Some(Self { flag, path })
    }

    /// The entries of a file, each made into a `T`, and all of them into a set
    /// in which none of their names may stand twice.
    pub(super) fn set<T, S>(
        self,
        shape: &Shape,
        name: &'static str,
        make: impl FnMut(&Row<'_>) -> Result<T, String>,
        finish: impl FnOnce(Vec<T>) -> Result<S, divvy::Error>,
    ) -> Result<S, Failure> {
        let (form, text) = self.form_and_text(shape.noun)?;
        let mut notes = Vec::new();
        let made = listing::collect_noting(form, &text, shape, &mut notes, make);
        let made = made.map_err(|fault| self.wrong(&fault))?;
        self.warn_of(&notes);
        tracing::debug!("read {} {} from {}", made.len(), shape.noun, self.path);
        finish(made).map_err(|error| {
            let repeated = listing::refuse_repeated(form, &text, shape, name, |_| String::new());
            match repeated {
                Err(fault) => self.wrong(&fault),
                Ok(()) => self.wrong(&error),
            }
        })
    }

    /// The partitions of a file.
    pub(super) fn partitions(self) -> Result<Partitions, Failure> {
        let (form, text) = self.form_and_text(listing::PARTITIONS.noun)?;
        let mut notes = Vec::new();
        let read = listing::partitions_noting(form, &text, &mut notes);
        let read = read.map_err(|fault| self.wrong(&fault))?;
        self.warn_of(&notes);
        if read.is_empty() {
            tracing::warn!("{self}: no partitions");
        }
        tracing::debug!("read {} partitions from {}", read.len(), self.path);
        Ok(read)
    }

    /// A name says the form, and is looked at before the file is; what has
    /// none is what it looks like.
    fn form_and_text(self, noun: &'static str) -> Result<(Form, String), Failure> {
        let named = self.named_form();
        if named.is_none() && !self.is_nameless() {
            let rule = "the name of a file must end in .csv, .tsv, .json, .yaml or .yml";
            return Err(Failure::usage(noun, format_args!("@{}", self.path), rule));
        }
        let text = self.text(LIST_BYTES_MAX)?;
        Ok((named.unwrap_or_else(|| Form::of_text(&text)), text))
    }

    /// The form that the ending of the name says.
    pub(super) fn named_form(self) -> Option<Form> {
        Form::of(Path::new(self.path))
    }

    /// Whether it is stdin or a pipe of a shell.
    pub(super) fn is_nameless(self) -> bool {
        self.path == STDIN || self.path.starts_with("/dev/")
    }

    /// Says what was left out of it.
    pub(super) fn warn_of(self, notes: &[String]) {
        for told in notes {
            tracing::warn!("{self}: {told}");
        }
    }

    /// The content of a file as text, without a byte order mark.
    pub(super) fn text(self, bytes_max: u64) -> Result<String, Failure> {
        let bytes = bytes(self.path, bytes_max)
            .with_context(|| self.to_string())
            .map_err(Failure::Failed)?;
        listing::text_of(bytes).map_err(|fault| self.wrong(&fault))
    }

    /// The file was read and its content is wrong.
    pub(super) fn wrong(self, reason: &impl fmt::Display) -> Failure {
        Failure::Failed(anyhow!("{self}: {reason}"))
    }

    /// What was written behind the `@`.
    pub(super) fn path(self) -> &'a str {
        self.path
    }
}

/// What to say of a name of a file that has no `@` before it.
pub(super) fn meant(text: &str) -> Option<String> {
    Form::of(Path::new(text)).map(|_| format!("did you mean @{text}?"))
}

fn bytes(path: &str, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    if path == STDIN {
        return limited(io::stdin().lock(), 0, bytes_max);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(anyhow!("is a directory"));
    }
    if metadata.len() > bytes_max {
        return Err(too_large(metadata.len(), bytes_max));
    }
    limited(file, metadata.len() as usize, bytes_max)
}

/// All that comes, unless that is too much: a pipe has no size until it has
/// been read.
fn limited(from: impl io::Read, expected: usize, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(expected);
    from.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(format_args!("more than {bytes_max}"), bytes_max));
    }
    Ok(bytes)
}

fn too_large(size: impl fmt::Display, bytes_max: u64) -> anyhow::Error {
    anyhow!("has {size} bytes, at most {bytes_max} are read")
}
