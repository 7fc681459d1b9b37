//! The rows that are for people: what operators wish, and the log of moves.

use divvy_core::store::with_moves;
use rusqlite::{Connection, OptionalExtension, params};

use super::log::Writing;

/// What operators wish of a cluster.
pub(super) fn wishes(connection: &Connection, cluster: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT json FROM wish WHERE cluster = ?")?
        .query_row([cluster], |row| row.get(0))
        .optional()
}

/// Writes what operators wish if it still is `before`, tells the members, and
/// says whether it was.
pub(super) fn set_wishes(
    writing: &Writing<'_>,
    cluster: &str,
    before: Option<&str>,
    json: &str,
) -> rusqlite::Result<bool> {
    if wishes(writing, cluster)?.as_deref() != before {
        return Ok(false);
    }
    writing
        .prepare_cached("INSERT OR REPLACE INTO wish (cluster, json) VALUES (?, ?)")?
        .execute(params![cluster, json])?;
    writing.tell_members(cluster)?;
    Ok(true)
}

/// A cluster's log of moves.
pub(super) fn move_log(connection: &Connection, cluster: &str) -> rusqlite::Result<String> {
    let log = connection
        .prepare_cached("SELECT lines FROM move_log WHERE cluster = ?")?
        .query_row([cluster], |row| row.get(0))
        .optional()?;
    Ok(log.unwrap_or_default())
}

/// Adds to a cluster's log of moves.
pub(super) fn log_moves(
    writing: &Writing<'_>,
    cluster: &str,
    moves: &[String],
) -> rusqlite::Result<()> {
    let log = with_moves(move_log(writing, cluster)?, moves);
    writing
        .prepare_cached("INSERT OR REPLACE INTO move_log (cluster, lines) VALUES (?, ?)")?
        .execute(params![cluster, log])?;
    Ok(())
}
