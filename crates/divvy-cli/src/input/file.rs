//! Files of workers and partitions: size and form are checked before anything
//! is read into sets.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use divvy::Partitions;
use divvy::listing::{self, Form, LIST_BYTES_MAX, Row, Shape, collect};

use crate::failure::Failure;

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
    /// The file that the value of a flag names, where it does.
    pub(super) fn of(flag: &'static str, value: &'a str) -> Option<Self> {
        let path = value.strip_prefix('@')?;
        Some(Self { flag, path })
    }

    /// The entries of a file, each made into a `T`.
    pub(super) fn rows<T>(
        self,
        shape: &Shape,
        make: impl FnMut(&Row<'_>) -> Result<T, String>,
    ) -> Result<Vec<T>, Failure> {
        let form = form_of(shape.noun, self.path)?;
        let text = self.text(LIST_BYTES_MAX)?;
        let made = collect(form, &text, shape, make).map_err(|fault| self.wrong(&fault))?;
        tracing::debug!("read {} {} from {}", made.len(), shape.noun, self.path);
        Ok(made)
    }

    /// The partitions of a file.
    pub(super) fn partitions(self) -> Result<Partitions, Failure> {
        let form = form_of(listing::PARTITIONS.noun, self.path)?;
        let text = self.text(LIST_BYTES_MAX)?;
        let read = listing::partitions(form, &text).map_err(|fault| self.wrong(&fault))?;
        tracing::debug!("read {} partitions from {}", read.len(), self.path);
        Ok(read)
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

fn bytes(path: &str, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(anyhow!("is a directory"));
    }
    let too_large = |size| anyhow!("has {size} bytes, at most {bytes_max} are read");
    if metadata.len() > bytes_max {
        return Err(too_large(metadata.len().to_string()));
    }
    // A pipe has no size until it has been read.
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(format!("more than {bytes_max}")));
    }
    Ok(bytes)
}

/// The form that the ending of the name says.
fn form_of(noun: &'static str, path: &str) -> Result<Form, Failure> {
    Form::of(Path::new(path)).ok_or_else(|| {
        let rule = "the name of a file must end in .csv, .json, .yaml or .yml";
        Failure::usage(noun, format_args!("@{path}"), rule)
    })
}
