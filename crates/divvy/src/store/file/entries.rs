//! The rows of keys and their values.

use std::sync::Arc;

use divvy_core::store::{Entry, Expected, Key, Outcome, Prefix, Revision};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::log::{Writing, revision, unreadable};
use crate::store::bounds::LIST_MAX;

/// The value of a key.
pub(super) fn get(
    connection: &Connection,
    cluster: &str,
    key: &Key,
) -> rusqlite::Result<Option<Entry>> {
    connection
        .prepare_cached("SELECT key, revision, value FROM entry WHERE cluster = ? AND key = ?")?
        .query_row(params![cluster, key.as_str()], entry)
        .optional()
}

/// Writes a value if the key is as expected.
pub(super) fn compare_and_set(
    writing: &Writing<'_>,
    cluster: &str,
    key: &Key,
    expected: Expected,
    value: &[u8],
) -> rusqlite::Result<Outcome<Revision>> {
    if state_of(writing, cluster, key)? != expected {
        return Ok(Outcome::Conflict);
    }
    let revision = writing.tell_key(cluster, key)?;
    writing
        .prepare_cached(
            "INSERT INTO entry (cluster, key, revision, value) VALUES (?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET revision = excluded.revision, value = excluded.value",
        )?
        .execute(params![cluster, key.as_str(), number(revision), value])?;
    Ok(Outcome::Done(revision))
}

/// Deletes a key if its value is still that of a revision.
pub(super) fn delete(
    writing: &Writing<'_>,
    cluster: &str,
    key: &Key,
    at: Revision,
) -> rusqlite::Result<Outcome<Revision>> {
    if state_of(writing, cluster, key)? != Expected::At(at) {
        return Ok(Outcome::Conflict);
    }
    let revision = writing.tell_key(cluster, key)?;
    writing
        .prepare_cached("DELETE FROM entry WHERE cluster = ? AND key = ?")?
        .execute(params![cluster, key.as_str()])?;
    Ok(Outcome::Done(revision))
}

/// All keys below a prefix, and one more than may be listed at most.
pub(super) fn list(
    connection: &Connection,
    cluster: &str,
    prefix: &Prefix,
) -> rusqlite::Result<Vec<Entry>> {
    // All keys of a prefix lie between its text, which ends with a dot, and
    // the same text with the character that comes after the dot.
    let from = prefix.text();
    let mut to = from.clone();
    match to.pop() {
        Some(_dot) => to.push('/'),
        None => to.push(char::MAX),
    }
    let sql = "SELECT key, revision, value FROM entry
               WHERE cluster = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?";
    let limit = i64::try_from(LIST_MAX + 1).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![cluster, from, to, limit], |row| {
        // A row that somebody else wrote, by a name that is no key, harms no other.
        match Key::parse(row.get_ref(0)?.as_str()?) {
            Ok(_key) => entry(row).map(Some),
            Err(_error) => Ok(None),
        }
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// What a conditional write of a key would have to expect.
fn state_of(connection: &Connection, cluster: &str, key: &Key) -> rusqlite::Result<Expected> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT revision FROM entry WHERE cluster = ? AND key = ?")?
        .query_row(params![cluster, key.as_str()], |row| row.get(0))
        .optional()?;
    Ok(found.map(revision).transpose()?.into())
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let key = row.get_ref(0)?.as_str()?;
    Ok(Entry {
        key: Key::parse(key).map_err(|error| unreadable(0, error))?,
        revision: revision(row.get(1)?)?,
        value: Arc::from(row.get_ref(2)?.as_blob()?),
    })
}

/// A revision as SQLite has it; all of them were given by it.
fn number(revision: Revision) -> i64 {
    i64::try_from(revision.get()).unwrap_or(i64::MAX)
}
