//! One thread's way to the database.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use divvy_core::store::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::failure::{Step, failure, system_failure};
use super::log::Writing;
use super::place::{Identity, Missing, Place};
use super::turn::Turns;
use super::{pairing, schema};

/// Statements that a connection keeps prepared.
const STATEMENTS_KEPT: usize = 64;
/// The log is cut back to this when it starts over, in bytes.
const LOG_BYTES_KEPT: i64 = 16 << 20;

thread_local! {
    static LOG_PAGES: Cell<i32> = const { Cell::new(0) };
}

/// Pages in the log after this thread's last commit, since this was last
/// asked.
pub(super) fn take_log_pages() -> i32 {
    LOG_PAGES.take()
}

/// A connection with the locks in front of it. Each thread has its own.
#[derive(Debug)]
pub(super) struct Database {
    place: Arc<Place>,
    busy_max: Duration,
    open: Open,
    /// Counts how often the database was not at its place.
    missed: Arc<AtomicU64>,
}

/// The files that are open.
#[derive(Debug)]
struct Open {
    connection: Connection,
    turns: Turns,
    identity: Option<Identity>,
}

impl Database {
    /// Opens the database. Waits for our turn.
    pub(super) fn open(
        place: Arc<Place>,
        busy_max: Duration,
        missing: Missing,
    ) -> Result<Self, StoreError> {
        let open = Open::new(&place, busy_max, missing)?;
        Ok(Self {
            place,
            busy_max,
            open,
            missed: Arc::default(),
        })
    }

    /// The same, for a thread that counts here how often the database was
    /// missing.
    pub(super) fn reporting(mut self, missed: Arc<AtomicU64>) -> Self {
        self.missed = missed;
        self
    }

    /// Where it is.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Reads from one state of the database.
    pub(super) fn read<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.follow_replacement(Missing::Refuse)?;
        let place = Arc::clone(&self.place);
        let failed = |error| failure(&place, Step::BeforeCommit, error);
        let transaction = self.open.connection.transaction().map_err(failed)?;
        let found = work(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(found)
    }

    /// Writes in one transaction, in our turn, and wakes those who watch if
    /// the work told them something. `start` is asked last of all whether it
    /// is still wanted; with a no, nothing happens.
    pub(super) fn write<T>(
        &mut self,
        start: impl FnOnce() -> bool,
        work: impl FnOnce(&Writing<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(&self.place);
        let before = |error| failure(&place, Step::BeforeCommit, error);
        let turn = loop {
            let taken = self.open.turns.take();
            let turn = taken.map_err(|error| system_failure(&place, "queue for it", error))?;
            if self.open.is_at(&place) {
                break turn;
            }
            drop(turn);
            let before = self.open.identity;
            self.follow_replacement(Missing::Make)?;
            if !self
                .open
                .identity
                .is_some_and(|now| now.is_database_of(before))
            {
                // What this write replaces is a revision of another database.
                return Err(StoreError::unavailable(
                    "the database was replaced: nothing was written",
                ));
            }
        };
        if !start() {
            return Err(StoreError::unavailable("nobody waits for this write"));
        }
        let transaction = self
            .open
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(before)?;
        let writing = Writing::new(&transaction);
        let done = work(&writing).map_err(before).inspect_err(make_room)?;
        let told = writing.told();
        transaction
            .commit()
            .map_err(|error| failure(&place, Step::Commit, error))
            .inspect_err(make_room)?;
        if told {
            turn.ring();
        }
        Ok(done)
    }

    /// Copies what is in the log into the database, while others go on; says
    /// how many pages the log has and how many of them are copied.
    pub(super) fn copy_log(&mut self) -> Result<(i64, i64), StoreError> {
        self.follow_replacement(Missing::Refuse)?;
        self.open.copy_log(&self.place)
    }

    /// The same, while nobody writes.
    pub(super) fn copy_log_in_turn(&self) -> Result<(i64, i64), StoreError> {
        let taken = self.open.turns.take();
        let _turn = taken.map_err(|error| system_failure(&self.place, "queue for it", error))?;
        self.open.copy_log(&self.place)
    }

    /// Whether the files that are open are still those at their place.
    pub(super) fn is_at_its_place(&self) -> bool {
        self.open.is_at(&self.place)
    }

    /// Opens what is at the place now, if that is another database than
    /// before.
    fn follow_replacement(&mut self, missing: Missing) -> Result<(), StoreError> {
        if self.is_at_its_place() {
            return Ok(());
        }
        self.missed.fetch_add(1, Ordering::AcqRel);
        let reopened = Open::new(&self.place, self.busy_max, missing);
        self.open = reopened.map_err(|error| match error.kind() {
            // The path was right once, and may be again.
            StoreErrorKind::Invalid => StoreError::unavailable(error),
            _ => error,
        })?;
        Ok(())
    }
}

impl Open {
    fn new(place: &Place, busy_max: Duration, missing: Missing) -> Result<Self, StoreError> {
        let place = Place::find(place.database())?;
        if missing == Missing::Refuse && place.identity().is_none() {
            return Err(place.deleted());
        }
        let turns = Turns::open(&place, missing)?;
        let turn = turns
            .take()
            .map_err(|error| system_failure(&place, "queue for it", error))?;
        let is_replacement = pairing::is_replacement(&place, turns.notes());
        pairing::remove_foreign_log(&place, turns.notes())?;
        let mut connection = connect(&place, busy_max, missing)?;
        schema::prepare(&mut connection, &place, is_replacement)?;
        pairing::note(&place, turns.notes());
        let identity = place.identity();
        drop(turn);
        Ok(Self {
            connection,
            turns,
            identity,
        })
    }

    fn is_at(&self, place: &Place) -> bool {
        self.identity.is_some() && place.identity() == self.identity
    }

    fn copy_log(&self, place: &Place) -> Result<(i64, i64), StoreError> {
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        self.connection
            .query_row(sql, [], |row| Ok((row.get(1)?, row.get(2)?)))
            .map_err(|error| failure(place, Step::BeforeCommit, error))
    }
}

/// Asks for the log to be copied after a write that the disk did not take: the
/// log then starts over, and small writes such as renewals find room again.
fn make_room(error: &StoreError) {
    if error.kind() == StoreErrorKind::Unfit {
        LOG_PAGES.set(i32::MAX);
    }
}

fn connect(place: &Place, busy_max: Duration, missing: Missing) -> Result<Connection, StoreError> {
    let failed = |error| failure(place, Step::BeforeCommit, error);
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, missing == Missing::Make);
    let connection = Connection::open_with_flags(place.database(), flags).map_err(failed)?;
    let set_up = || {
        connection.busy_timeout(busy_max)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        // Closing would delete the log by its path, where by then another
        // database's log may be.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
    };
    set_up().map_err(failed)?;
    schema::check(&connection, place)?;
    let set_mode = || {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // What a power loss takes is told by the machine's next start: see
        // `schema`.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)
    };
    set_mode().map_err(failed)?;
    // In place of SQLite's own, which would copy the log in our turn.
    connection.wal_hook(Some(|_, pages| {
        LOG_PAGES.set(pages);
        Ok(())
    }));
    Ok(connection)
}

#[cfg(test)]
mod tests {
    /// Before 3.51.3, copying the log beside a writer could damage the
    /// database: <https://sqlite.org/wal.html#walresetbug>.
    #[test]
    fn the_sqlite_that_is_built_in_can_copy_beside_writers() {
        assert!(rusqlite::version_number() >= 3_051_003);
    }
}
