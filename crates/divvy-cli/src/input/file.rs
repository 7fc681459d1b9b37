//! Files of workers and partitions: size and form are checked before anything
//! is read into sets.

use std::fmt::Display;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};

use super::row::Row;
use super::{csv, list};
use crate::failure::Failure;

/// Largest file that is read.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 30;
/// What spreadsheets put in front of UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What goes wrong with the content of a file, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// Such as `line 3`; `None` where it is the whole file.
    pub(super) place: Option<String>,
    pub(super) reason: String,
}

/// The entries of a file, each made into a `T`. `flag` is the one that names
/// the file.
pub(super) fn rows<T>(
    flag: &'static str,
    path: &str,
    fields: &[&'static str],
    mut make: impl FnMut(&Row<'_>) -> Result<T, String>,
) -> Result<Vec<T>, Failure> {
    let form = Form::of(flag, path)?;
    let text = text(path)?;
    let mut made = Vec::new();
    let mut keep = |row: &Row<'_>| {
        made.push(make(row)?);
        Ok(())
    };
    let read = match form {
        Form::Csv => csv::read(&text, fields, &mut keep),
        Form::Json => list::read_json(&text, fields, &mut keep),
        Form::Yaml => list::read_yaml(&text, fields, &mut keep),
    };
    read.map_err(|fault| match fault.place {
        Some(place) => wrong(path, &format_args!("{place}: {}", fault.reason)),
        None => wrong(path, &fault.reason),
    })?;
    tracing::debug!("read {} {flag} from {path}", made.len());
    Ok(made)
}

/// The content of a file as text, without a byte order mark.
pub(super) fn text(path: &str) -> Result<String, Failure> {
    let bytes = bytes(path)
        .with_context(|| path.to_owned())
        .map_err(Failure::Failed)?;
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        wrong(
            path,
            &format_args!("line {line}: is not UTF-8, save it as UTF-8"),
        )
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

/// The file was read and its content is wrong.
pub(super) fn wrong(path: &str, reason: &impl Display) -> Failure {
    Failure::Failed(anyhow!("{path}: {reason}"))
}

fn bytes(path: &str) -> anyhow::Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(anyhow!("is a directory"));
    }
    let too_large = |size| anyhow!("has {size} bytes, at most {FILE_BYTES_MAX} are read");
    if metadata.len() > FILE_BYTES_MAX {
        return Err(too_large(metadata.len().to_string()));
    }
    // A pipe has no size until it has been read.
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large(format!("more than {FILE_BYTES_MAX}")));
    }
    Ok(bytes)
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Csv,
    Json,
    Yaml,
}

impl Form {
    /// The form that the ending of the name says.
    fn of(flag: &'static str, path: &str) -> Result<Self, Failure> {
        let ending = Path::new(path).extension().unwrap_or_default();
        match ending.to_ascii_lowercase().to_str() {
            Some("csv") => Ok(Self::Csv),
            Some("json") => Ok(Self::Json),
            Some("yaml" | "yml") => Ok(Self::Yaml),
            _ => {
                let rule = "the name of a file must end in .csv, .json, .yaml or .yml";
                Err(Failure::usage(flag, format_args!("@{path}"), rule))
            }
        }
    }
}
