//! The rows of leases, sessions, members, cooldown marks and groups: what the
//! reference semantics do to a table, done to a database.

use std::time::Duration;

use divvy_core::store::{
    Acquired, Claim, GroupDocument, Heartbeat, Holder, LeaseKey, Member, Nonce, SessionStart,
    Tenure, Token,
};
use rusqlite::{Connection, OptionalExtension, Params, params};

use super::log::Writing;
use super::time;
use crate::store::bounds::{LIST_MAX, readable_group};

/// Released leases that are told one by one; of more, only that there are.
const RELEASES_TOLD_MAX: usize = 256;

/// Takes a lease that nobody holds, if the quarantine is over.
pub(super) fn acquire(
    connection: &Connection,
    (now, unix_ms): (i64, u64),
    worker: &str,
    claim: &Claim,
    ttl: Duration,
    is_over: bool,
) -> rusqlite::Result<Acquired> {
    let LeaseKey { group, number } = &claim.key;
    let last: Option<(i64, i64)> = connection
        .prepare_cached("SELECT expires, token FROM lease WHERE name = ? AND number = ?")?
        .query_row(params![group.as_str(), number], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    if last.is_some_and(|(expires, _)| now < expires) {
        return Ok(Acquired::Held);
    }
    if !is_over {
        return Ok(Acquired::Quarantined);
    }
    let token = Token::after(last.and_then(|(_, token)| Token::new(token)), unix_ms);
    let expires = now.saturating_add(time::nanos(ttl));
    let nonce = claim.nonce.to_string();
    connection
        .prepare_cached(
            "INSERT INTO lease (name, number, worker, expires, token, nonce)
             VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET worker = excluded.worker, expires = excluded.expires,
                 token = excluded.token, nonce = excluded.nonce",
        )?
        .execute(params![
            group.as_str(),
            number,
            worker,
            expires,
            token.get(),
            nonce
        ])?;
    Ok(Acquired::Granted(token))
}

/// Lets a lease run for `ttl` from now, if this tenure is still current.
pub(super) fn renew(
    connection: &Connection,
    now: i64,
    worker: &str,
    claim: &Claim,
    ttl: Duration,
) -> rusqlite::Result<Tenure> {
    let expires = now.saturating_add(time::nanos(ttl));
    let LeaseKey { group, number } = &claim.key;
    let nonce = claim.nonce.to_string();
    tenure(
        connection,
        "UPDATE lease SET expires = ?
         WHERE name = ? AND number = ? AND worker = ? AND nonce = ? AND expires > ?",
        params![expires, group.as_str(), number, worker, nonce, now],
    )
}

/// Ends leases where the tenure is still current, and tells of it.
pub(super) fn release(
    writing: &Writing<'_>,
    now: i64,
    worker: &str,
    claims: &[Claim],
) -> rusqlite::Result<Vec<Tenure>> {
    let mut tenures = Vec::with_capacity(claims.len());
    for claim in claims {
        let LeaseKey { group, number } = &claim.key;
        let nonce = claim.nonce.to_string();
        tenures.push(tenure(
            writing,
            "UPDATE lease SET worker = NULL, expires = 0
             WHERE name = ? AND number = ? AND worker = ? AND nonce = ? AND expires > ?",
            params![group.as_str(), number, worker, nonce, now],
        )?);
    }
    let ended = claims.iter().zip(&tenures);
    let ended: Vec<_> = ended
        .filter(|(_, tenure)| **tenure == Tenure::Current)
        .collect();
    if ended.len() > RELEASES_TOLD_MAX {
        writing.tell_resync()?;
        return Ok(tenures);
    }
    for (claim, _) in ended {
        writing.tell_released(&claim.key)?;
    }
    Ok(tenures)
}

/// Who holds a lease.
pub(super) fn holder(
    connection: &Connection,
    now: i64,
    key: &LeaseKey,
) -> rusqlite::Result<Option<Holder>> {
    connection
        .prepare_cached(
            "SELECT worker, expires, token, nonce FROM lease
             WHERE name = ? AND number = ? AND expires > ?",
        )?
        .query_row(params![key.group.as_str(), key.number, now], |row| {
            // What somebody else wrote there is no tenure.
            let nonce: Option<Nonce> = row.get_ref(3)?.as_str()?.parse().ok();
            Ok(Holder {
                worker: row.get(0)?,
                left: time::left(now, row.get(1)?),
                fence: Token::new(row.get(2)?).zip(nonce),
            })
        })
        .optional()
}

/// Takes a worker's name for a session.
pub(super) fn open_session(
    connection: &Connection,
    now: i64,
    (cluster, worker): (&str, &str),
    session: Nonce,
    ttl: Duration,
) -> rusqlite::Result<SessionStart> {
    forget_expired(connection, now)?;
    let session = session.to_string();
    let taken: Option<i64> = connection
        .prepare_cached(
            "SELECT expires FROM session WHERE cluster = ? AND worker = ? AND nonce <> ?",
        )?
        .query_row([cluster, worker, &session], |row| row.get(0))
        .optional()?;
    if let Some(expires) = taken {
        return Ok(SessionStart::Taken(time::left(now, expires)));
    }
    let expires = now.saturating_add(time::nanos(ttl));
    connection
        .prepare_cached(
            "REPLACE INTO session (cluster, worker, nonce, expires) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![cluster, worker, session, expires])?;
    Ok(SessionStart::Opened)
}

/// A heartbeat; tells of a member that is new or says something new.
pub(super) fn beat(
    writing: &Writing<'_>,
    now: i64,
    (cluster, worker): (&str, &str),
    heartbeat: &Heartbeat,
    info: &str,
) -> rusqlite::Result<Tenure> {
    let renewed = tenure(
        writing,
        "UPDATE session SET expires = ?
         WHERE cluster = ? AND worker = ? AND nonce = ? AND expires > ?",
        params![
            now.saturating_add(time::nanos(heartbeat.session_ttl)),
            cluster,
            worker,
            heartbeat.session.to_string(),
            now
        ],
    )?;
    if renewed == Tenure::Over {
        return Ok(Tenure::Over);
    }
    let known: Option<String> = writing
        .prepare_cached("SELECT info FROM member WHERE cluster = ? AND worker = ? AND expires > ?")?
        .query_row(params![cluster, worker, now], |row| row.get(0))
        .optional()?;
    writing
        .prepare_cached(
            "INSERT INTO member (cluster, worker, info, expires) VALUES (?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET info = excluded.info, expires = excluded.expires",
        )?
        .execute(params![
            cluster,
            worker,
            info,
            now.saturating_add(time::nanos(heartbeat.heartbeat_ttl))
        ])?;
    if known.as_deref() != Some(info) {
        writing.tell_members(cluster)?;
    }
    Ok(Tenure::Current)
}

/// Ends a session and the membership with it, and tells of it.
pub(super) fn leave(
    writing: &Writing<'_>,
    now: i64,
    (cluster, worker): (&str, &str),
    session: Nonce,
) -> rusqlite::Result<Tenure> {
    let ended = tenure(
        writing,
        "DELETE FROM session WHERE cluster = ? AND worker = ? AND nonce = ? AND expires > ?",
        params![cluster, worker, session.to_string(), now],
    )?;
    if ended == Tenure::Current {
        writing
            .prepare_cached("DELETE FROM member WHERE cluster = ? AND worker = ?")?
            .execute([cluster, worker])?;
        writing.tell_members(cluster)?;
    }
    Ok(ended)
}

/// The live workers of a cluster, in order of their names.
pub(super) fn members(
    connection: &Connection,
    now: i64,
    cluster: &str,
) -> rusqlite::Result<Vec<Member>> {
    let sql = "SELECT worker, info FROM member
               WHERE cluster = ? AND expires > ? ORDER BY worker";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![cluster, now], |row| {
        Ok(Member {
            name: row.get(0)?,
            info: Some(row.get(1)?),
        })
    })?;
    rows.collect()
}

/// Marks a partition as moved, for as long as its cooldown lasts.
pub(super) fn mark_moved(
    connection: &Connection,
    now: i64,
    key: &LeaseKey,
    cooldown: Duration,
) -> rusqlite::Result<()> {
    let expires = now.saturating_add(time::nanos(cooldown));
    connection
        .prepare_cached(
            "INSERT INTO moved (name, number, expires) VALUES (?, ?, ?)
             ON CONFLICT DO UPDATE SET expires = excluded.expires",
        )?
        .execute(params![key.group.as_str(), key.number, expires])?;
    Ok(())
}

/// Forgets the marks of cooldowns that are over.
pub(super) fn forget_cooled(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM moved WHERE expires <= ?")?
        .execute([now])?;
    Ok(())
}

/// Whether a partition was moved so lately that it has to stay.
pub(super) fn is_cooling(
    connection: &Connection,
    now: i64,
    key: &LeaseKey,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM moved WHERE name = ? AND number = ? AND expires > ?")?
        .exists(params![key.group.as_str(), key.number, now])
}

/// All groups in order of their names, and one more than may be listed at
/// most.
pub(super) fn groups(connection: &Connection) -> rusqlite::Result<Vec<GroupDocument>> {
    let limit = i64::try_from(LIST_MAX + 1).unwrap_or(i64::MAX);
    let sql = "SELECT name, json FROM work_group ORDER BY name LIMIT ?";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([limit], |row| Ok(readable_group(row.get(0)?, row.get(1)?)))?;
    rows.filter_map(Result::transpose).collect()
}

/// Adds or replaces a group, and tells of it.
pub(super) fn set_group(writing: &Writing<'_>, name: &str, json: &str) -> rusqlite::Result<()> {
    writing
        .prepare_cached("INSERT OR REPLACE INTO work_group (name, json) VALUES (?, ?)")?
        .execute([name, json])?;
    writing.tell_group(name)
}

/// Removes a group, tells of it, and says whether it was there.
pub(super) fn remove_group(writing: &Writing<'_>, name: &str) -> rusqlite::Result<bool> {
    let removed = writing
        .prepare_cached("DELETE FROM work_group WHERE name = ?")?
        .execute([name])?;
    writing.tell_group(name)?;
    Ok(removed > 0)
}

/// Sessions and members are few, and every start of one looks through them.
fn forget_expired(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM session WHERE expires <= ?",
        "DELETE FROM member WHERE expires <= ?",
    ] {
        connection.prepare_cached(sql)?.execute([now])?;
    }
    Ok(())
}

/// Changes the one row that a current tenure has.
fn tenure(connection: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<Tenure> {
    match connection.prepare_cached(sql)?.execute(params)? {
        0 => Ok(Tenure::Over),
        _ => Ok(Tenure::Current),
    }
}
