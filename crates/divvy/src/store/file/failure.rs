//! What SQLite says, in the words of a store.

use std::io;

use divvy_core::store::{StoreError, StoreErrorKind};
use rusqlite::{Error, ErrorCode, ffi};

use super::place::Place;

/// How far an operation had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing was written that would not be rolled back.
    BeforeCommit,
    /// The transaction was being committed.
    Commit,
}

/// The store's error for one of SQLite's.
pub(super) fn failure(place: &Place, step: Step, error: Error) -> StoreError {
    use StoreErrorKind::{Unavailable, Unfit, Unknown};
    let extended = error
        .sqlite_error()
        .map_or(0, |failed| failed.extended_code);
    let (kind, what) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => (Unfit, "is not a database; name another file"),
        Some(ErrorCode::DatabaseCorrupt) => (
            Unfit,
            "is damaged; stop every process that uses it, move it away with the files beside it, \
             and start again",
        ),
        Some(ErrorCode::DiskFull) => (Unfit, "is full; free space on its disk"),
        // A frame of the log that could not be written is never committed.
        Some(ErrorCode::SystemIoFailure) if extended == ffi::SQLITE_IOERR_WRITE => (
            Unfit,
            "cannot be written; check its disk, the quota and the limit on file sizes",
        ),
        Some(ErrorCode::SystemIoFailure) if step == Step::Commit => {
            (Unknown, "failed while writing; check its disk")
        }
        Some(ErrorCode::SystemIoFailure) => (Unavailable, "cannot be read; check its disk"),
        Some(ErrorCode::ReadOnly) if extended == ffi::SQLITE_READONLY_DBMOVED => {
            (Unavailable, "was moved while it was open")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => (
            Unfit,
            "cannot be opened for writing; let this user read and write it and its directory",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            Unavailable,
            "is kept busy by a program that does not queue for it",
        ),
        Some(ErrorCode::OutOfMemory) => (Unavailable, "needs more memory than there is"),
        _ => (Unfit, "holds what this program cannot read"),
    };
    StoreError::new(kind, format_args!("store '{place}' {what} ({error})")).caused_by(error)
}

/// A lock, a notice or a fact about the machine could not be had.
pub(super) fn system_failure(place: &Place, what: &str, error: io::Error) -> StoreError {
    StoreError::unfit(format_args!("store '{place}': cannot {what}: {error}")).caused_by(error)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// Verifies the words for a full disk with SQLite's own error for it.
    #[test]
    fn a_full_database_is_unfit_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::find(&directory.path().join("divvy.db")).unwrap();
        let connection = Connection::open(place.database()).unwrap();
        connection.execute_batch("CREATE TABLE t (v)").unwrap();
        connection.pragma_update(None, "max_page_count", 5).unwrap();
        let full = connection.execute("INSERT INTO t VALUES (zeroblob(100000))", []);
        let error = failure(&place, Step::Commit, full.unwrap_err());
        assert_eq!(error.kind(), StoreErrorKind::Unfit);
        let text = error.to_string();
        let path = place.database().to_str().unwrap();
        assert!(
            text.contains(path) && text.contains("is full; free space"),
            "{text}"
        );
    }

    #[test]
    fn only_a_failure_of_the_commit_itself_leaves_its_fate_open() {
        let place = Place::find(std::path::Path::new("divvy.db")).unwrap();
        let broken = || {
            let code = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
            Error::SqliteFailure(code, None)
        };
        let before = failure(&place, Step::BeforeCommit, broken());
        assert_eq!(before.kind(), StoreErrorKind::Unavailable);
        let during = failure(&place, Step::Commit, broken());
        assert_eq!(during.kind(), StoreErrorKind::Unknown);
    }
}
