//! The quarantine: one row, which a file that may not know of every lease is
//! given when it is opened.

use std::time::Duration;

use divvy_core::store::{Quarantine, QuarantineId, QuarantineReport};
use rusqlite::{Connection, OptionalExtension, params};

use super::time;

/// Takes in what a member reports. A row that somebody deleted is a quarantine
/// that begins.
pub(super) fn report(
    connection: &Connection,
    report: &QuarantineReport,
) -> rusqlite::Result<Quarantine> {
    let before = read(connection)?;
    let mut quarantine = match before.clone() {
        Some(quarantine) => quarantine,
        None => Quarantine::begin(fresh_id(), None),
    };
    quarantine.report(report);
    if before.as_ref() != Some(&quarantine) {
        write(connection, &quarantine)?;
    }
    Ok(quarantine)
}

/// Whether leases are granted; remembers that one of this length may be.
pub(super) fn cover(connection: &Connection, lease: Duration) -> rusqlite::Result<bool> {
    let Some(mut quarantine) = read(connection)?.filter(|found| found.is_over) else {
        return Ok(false);
    };
    if quarantine.longest_lease < lease {
        quarantine.cover(lease);
        write(connection, &quarantine)?;
    }
    Ok(true)
}

/// Begins the quarantine of a new life. It is over at once where nobody can
/// have a lease of an earlier one.
pub(super) fn begin(connection: &Connection, is_over: bool) -> rusqlite::Result<()> {
    let before = read(connection)?;
    let quarantine = Quarantine {
        is_over,
        ..Quarantine::begin(fresh_id(), before.as_ref())
    };
    write(connection, &quarantine)
}

fn fresh_id() -> QuarantineId {
    QuarantineId::new(format!("{:032x}", fastrand::u128(..)))
}

fn read(connection: &Connection) -> rusqlite::Result<Option<Quarantine>> {
    connection
        .prepare_cached("SELECT id, longest_lease, is_over FROM quarantine")?
        .query_row([], |row| {
            let longest: i64 = row.get(1)?;
            Ok(Quarantine {
                id: QuarantineId::new(row.get::<_, String>(0)?),
                longest_lease: time::left(0, longest),
                is_over: row.get(2)?,
            })
        })
        .optional()
}

fn write(connection: &Connection, quarantine: &Quarantine) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO quarantine (one, id, longest_lease, is_over)
             VALUES (1, ?, ?, ?)",
        )?
        .execute(params![
            quarantine.id.as_str(),
            time::nanos(quarantine.longest_lease),
            quarantine.is_over
        ])?;
    Ok(())
}
