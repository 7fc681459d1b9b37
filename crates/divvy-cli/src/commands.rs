//! The commands: each takes what was typed and writes its result.

pub(crate) mod agent;
pub(crate) mod assign;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod key;
pub(crate) mod live;
pub(crate) mod man;
mod picture;
pub(crate) mod plan;
pub(crate) mod playground;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod why;
pub(crate) mod wish;
pub(crate) mod worker;
pub(crate) mod workload;

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a result as indented JSON.
fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *out, value)
        .map_err(|error| Failure::output(error.into()))?;
    writeln!(out).map_err(Failure::output)
}

/// Writes a result as CSV with a header.
fn write_csv<const N: usize>(
    out: &mut dyn Write,
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), Failure> {
    let told = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => Failure::output(error),
        kind => Failure::output(io::Error::other(format!("{kind:?}"))),
    };
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(header).map_err(told)?;
    for row in rows {
        writer.write_record(row).map_err(told)?;
    }
    writer.flush().map_err(Failure::output)
}
