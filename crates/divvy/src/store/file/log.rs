//! The log of changes: it numbers them all, and tells those who watch what
//! they have missed.

use std::cell::Cell;

use divvy_core::store::{Key, LeaseKey, LeaseNotice, Revision};
use rusqlite::types::Type;
use rusqlite::{Connection, Transaction, params};

/// Changes that are kept. Who is further behind reads everything.
pub(super) const KEPT_MAX: i64 = 4096;

/// What is told of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// Something happened to this key.
    Key(Key),
    /// Something happened to leases, members or groups.
    Lease(LeaseNotice),
    /// Changes have been missed, or cannot be read.
    Missed,
}

/// A transaction that may tell the others something.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    transaction: &'a Transaction<'a>,
    told: Cell<bool>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(transaction: &'a Transaction<'a>) -> Self {
        Self {
            transaction,
            told: Cell::new(false),
        }
    }

    /// Whether anything was told.
    pub(super) fn told(&self) -> bool {
        self.told.get()
    }

    /// Numbers the change of a key, and tells of it.
    pub(super) fn tell_key(&self, cluster: &str, key: &Key) -> rusqlite::Result<Revision> {
        self.tell(KEY, Some(cluster), key.as_str())
    }

    /// Tells that a group's document changed.
    pub(super) fn tell_group(&self, name: &str) -> rusqlite::Result<()> {
        self.tell(GROUP, None, name).map(drop)
    }

    /// Tells that the members of a cluster are others, or say something else.
    pub(super) fn tell_members(&self, cluster: &str) -> rusqlite::Result<()> {
        self.tell(MEMBERS, Some(cluster), "").map(drop)
    }

    /// Tells that a lease was released.
    pub(super) fn tell_released(&self, key: &LeaseKey) -> rusqlite::Result<()> {
        self.tell(RELEASED, None, &key.to_string()).map(drop)
    }

    /// Tells that more happened to leases than is worth telling one by one.
    pub(super) fn tell_resync(&self) -> rusqlite::Result<()> {
        self.tell(RESYNC, None, "").map(drop)
    }

    fn tell(&self, kind: i64, cluster: Option<&str>, subject: &str) -> rusqlite::Result<Revision> {
        self.told.set(true);
        // The last row is never deleted, so the numbers only increase.
        self.prepare_cached("INSERT INTO log (kind, cluster, subject) VALUES (?, ?, ?)")?
            .execute(params![kind, cluster, subject])?;
        let id = self.last_insert_rowid();
        self.prepare_cached("DELETE FROM log WHERE id <= ?")?
            .execute([id - KEPT_MAX])?;
        revision(id)
    }
}

impl std::ops::Deref for Writing<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.transaction
    }
}

/// The number of the last change.
pub(super) fn last(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(id), 0) FROM log")?
        .query_row([], |row| row.get(0))
}

/// What a cluster is told of the changes after the one numbered `seen`, and
/// the number of the last.
pub(super) fn since(
    connection: &Connection,
    cluster: &str,
    seen: i64,
) -> rusqlite::Result<(Vec<News>, i64)> {
    let last = last(connection)?;
    let first: i64 = connection
        .prepare_cached("SELECT coalesce(min(id), 1) FROM log")?
        .query_row([], |row| row.get(0))?;
    // Numbers that went back are those of a database that forgot some.
    if seen > last || seen + 1 < first {
        return Ok((vec![News::Missed], last));
    }
    let sql = "SELECT kind, subject FROM log
               WHERE id > ? AND (cluster = ? OR cluster IS NULL) ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![seen, cluster], |row| {
        let subject: String = row.get(1)?;
        Ok(news(row.get(0)?, subject))
    })?;
    Ok((rows.collect::<rusqlite::Result<_>>()?, last))
}

/// A number of the log as a revision.
pub(super) fn revision(id: i64) -> rusqlite::Result<Revision> {
    let number = u64::try_from(id).ok().and_then(Revision::new);
    number.ok_or(rusqlite::Error::IntegralValueOutOfRange(0, id))
}

/// A text of the database that should have been a key or a name.
pub(super) fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

const KEY: i64 = 1;
const GROUP: i64 = 2;
const MEMBERS: i64 = 3;
const RELEASED: i64 = 4;
const RESYNC: i64 = 5;

fn news(kind: i64, subject: String) -> News {
    match kind {
        KEY => Key::parse(&subject).map_or(News::Missed, News::Key),
        GROUP => News::Lease(LeaseNotice::Group(subject)),
        MEMBERS => News::Lease(LeaseNotice::Members),
        RELEASED => {
            let key = subject
                .rsplit_once(':')
                .and_then(|(group, number)| LeaseKey::new(group, number.parse().ok()?).ok());
            key.map_or(News::Missed, |key| News::Lease(LeaseNotice::Released(key)))
        }
        RESYNC => News::Lease(LeaseNotice::Resync),
        _ => News::Missed,
    }
}
