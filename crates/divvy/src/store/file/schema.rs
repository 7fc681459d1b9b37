//! What is in the database, and which life of it this is.

use divvy_core::store::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::failure::{Step, failure, system_failure};
use super::place::Place;
use super::quarantine;

/// Marks our databases among all of SQLite's: `divv`.
pub(super) const APPLICATION_ID: i32 = 0x6469_7676;
/// The newest layout that this program knows.
const VERSION: i32 = 3;

/// Times are nanoseconds of the machine's clock since its start. A lease's row
/// outlives the lease, for its token and nonce do. `log` numbers all changes
/// and keeps the last ones for those who watch.
const LAYOUT: &str = "
CREATE TABLE life (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL, boot TEXT NOT NULL, home TEXT NOT NULL, doubted_from INTEGER
) STRICT;
CREATE TABLE log (
    id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, cluster TEXT, subject TEXT NOT NULL
) STRICT;
CREATE TABLE entry (
    cluster TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (cluster, key)
) STRICT;
CREATE TABLE lease (
    name TEXT NOT NULL, number INTEGER NOT NULL, worker TEXT, expires INTEGER NOT NULL,
    token INTEGER NOT NULL, nonce TEXT NOT NULL,
    PRIMARY KEY (name, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE session (
    cluster TEXT NOT NULL, worker TEXT NOT NULL, nonce TEXT NOT NULL, expires INTEGER NOT NULL,
    PRIMARY KEY (cluster, worker)
) STRICT, WITHOUT ROWID;
CREATE TABLE member (
    cluster TEXT NOT NULL, worker TEXT NOT NULL, info TEXT NOT NULL, expires INTEGER NOT NULL,
    PRIMARY KEY (cluster, worker)
) STRICT;
CREATE TABLE moved (
    name TEXT NOT NULL, number INTEGER NOT NULL, expires INTEGER NOT NULL,
    PRIMARY KEY (name, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX moved_until ON moved (expires);
CREATE TABLE work_group (name TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT;
";

/// What the second layout adds.
const LAYOUT_2: &str = "
CREATE TABLE wish (cluster TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT;
CREATE TABLE move_log (cluster TEXT PRIMARY KEY, lines TEXT NOT NULL) STRICT;
";

/// What the third layout adds. It takes the place of `life.doubted_from`.
const LAYOUT_3: &str = "
CREATE TABLE quarantine (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL, longest_lease INTEGER NOT NULL, is_over INTEGER NOT NULL
) STRICT;
";

/// Refuses a database that is not ours or too new, before anything about it is
/// changed.
pub(super) fn check(connection: &Connection, place: &Place) -> Result<(), StoreError> {
    let failed = |error| failure(place, Step::BeforeCommit, error);
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    let application = pragma(connection, "application_id").map_err(failed)?;
    let version = pragma(connection, "user_version").map_err(failed)?;
    if application != APPLICATION_ID && (tables > 0 || application != 0) {
        return Err(StoreError::unfit(format_args!(
            "store '{place}' is another program's database; name another file"
        )));
    }
    if version > VERSION {
        return Err(StoreError::unfit(format_args!(
            "store '{place}' has layout {version}, and this program knows layouts up to \
             {VERSION}; use a newer divvy, or name another file"
        )));
    }
    Ok(())
}

/// Makes the tables if they are missing, and begins a new incarnation where the
/// last one may have been forgotten in part. `is_replacement` says that another
/// database was used at this place last. Must be called in our turn.
pub(super) fn prepare(
    connection: &mut Connection,
    place: &Place,
    is_replacement: bool,
) -> Result<(), StoreError> {
    let boot = fact(place, "/proc/sys/kernel/random/boot_id")?;
    let fresh_id = fact(place, "/proc/sys/kernel/random/uuid")?;
    let home = place
        .home()
        .map_err(|error| system_failure(place, "look at it", error))?;
    let before = |error| failure(place, Step::BeforeCommit, error);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(before)?;
    let work = || {
        let version = pragma(&transaction, "user_version")?;
        if version < 1 {
            transaction.execute_batch(LAYOUT)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        if version < 2 {
            transaction.execute_batch(LAYOUT_2)?;
        }
        if version < 3 {
            transaction.execute_batch(LAYOUT_3)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        let now = Life {
            id: &fresh_id,
            boot: &boot,
            home: &home,
        };
        live(&transaction, &now, is_replacement)
    };
    work().map_err(before)?;
    transaction
        .commit()
        .map_err(|error| failure(place, Step::Commit, error))
}

/// What an incarnation of a database is known by.
struct Life<'a> {
    id: &'a str,
    /// Of the machine.
    boot: &'a str,
    /// Of the file.
    home: &'a str,
}

/// A database forgets in two ways. After a power loss or a crash of the kernel
/// its last commits may be missing, but then nobody is left who could rely on
/// them; and the clock started anew, so nothing that expires by it is valid.
/// And a file may be put in the place of another while members live: then
/// leases may have been granted that it does not know, also if it was last used
/// before the machine was restarted.
fn live(connection: &Connection, now: &Life<'_>, is_replacement: bool) -> rusqlite::Result<()> {
    let last: Option<(String, String)> = connection
        .query_row("SELECT boot, home FROM life", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let is_same_boot = last.as_ref().is_some_and(|(boot, _)| boot == now.boot);
    let is_at_home = !is_replacement && last.as_ref().is_some_and(|(_, home)| home == now.home);
    if is_same_boot && is_at_home {
        return Ok(());
    }
    if !is_same_boot {
        connection.execute_batch(
            "UPDATE lease SET worker = NULL, expires = 0;
             DELETE FROM session; DELETE FROM member; DELETE FROM moved;",
        )?;
    }
    connection.execute(
        "INSERT OR REPLACE INTO life (one, id, boot, home) VALUES (1, ?, ?, ?)",
        params![now.id, now.boot, now.home],
    )?;
    // After a restart of the machine nobody is left who could hold a lease of
    // this very file.
    quarantine::begin(connection, is_at_home)
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn fact(place: &Place, path: &str) -> Result<String, StoreError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| system_failure(place, &format!("read {path}"), error))?;
    Ok(text.trim().to_owned())
}
