//! Which log belongs to which database.
//!
//! SQLite takes the log that lies beside a database for its own, also if the
//! database was put in the place of another, and would mix the two. So whoever
//! opens a database notes both files, and a log that was noted with another
//! database is removed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use divvy_core::store::StoreError;

use super::failure::system_failure;
use super::place::Place;

/// What SQLite keeps beside a database: its log, and the memory that those who
/// read it share.
const LOG_ENDINGS: [&str; 2] = ["-wal", "-shm"];
/// More than a note takes.
const NOTE_BYTES_MAX: usize = 256;

/// Removes a log that is not this database's: that of one that was deleted, or
/// in whose place another was put. Whoever still has it open keeps it. Must be
/// called in our turn.
pub(super) fn remove_foreign_log(place: &Place, notes: &File) -> Result<(), StoreError> {
    if place.has_database() && !is_foreign(place, notes) {
        return Ok(());
    }
    for ending in LOG_ENDINGS {
        match fs::remove_file(place.beside(ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let what = format!("remove the old {ending} file beside it");
                return Err(system_failure(place, &what, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Notes that the log is the database's, as they are now. Must be called in our
/// turn. Without a note, nothing is known of a log, and it is kept.
pub(super) fn note(place: &Place, notes: &File) {
    let Some((database, log)) = present(place) else {
        return;
    };
    let note = format!("{database}\n{log}\n");
    if noted(notes).is_some_and(|noted| noted == (database, log)) {
        return;
    }
    let written = notes.write_all_at(note.as_bytes(), 0);
    if let Err(error) = written.and_then(|()| notes.set_len(note.len() as u64)) {
        tracing::debug!(%error, "cannot note which log is the database's");
    }
}

/// Whether another database than the one that is there was used at this place
/// last, as far as is known.
pub(super) fn is_replacement(place: &Place, notes: &File) -> bool {
    let (Ok(database), Some((last, _log))) = (place.home(), noted(notes)) else {
        return false;
    };
    database != last
}

/// Whether the log was noted with another database than the one that is there.
fn is_foreign(place: &Place, notes: &File) -> bool {
    let (Some((database, log)), Some(noted)) = (present(place), noted(notes)) else {
        return false;
    };
    log == noted.1 && database != noted.0
}

/// What tells the two files from any others.
fn present(place: &Place) -> Option<(String, String)> {
    Some((place.home().ok()?, place.home_beside(LOG_ENDINGS[0]).ok()?))
}

fn noted(notes: &File) -> Option<(String, String)> {
    let mut bytes = [0; NOTE_BYTES_MAX];
    let count = notes.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..count]).ok()?;
    let mut lines = text.lines().map(str::to_owned);
    Some((lines.next()?, lines.next()?))
}
