//! Who holds what, whole or as the difference to an earlier state.
//!
//! Tokens and versions repeat, so they stand once in a table of *stamps*; an
//! entry says whether it has the same stamp as the one before. A hundred
//! thousand entries are then about two hundred kilobytes.

use std::collections::BTreeMap;

use super::frame::{Reader, Writer};
use crate::error::Invalid;
use crate::leader::record::{Holding, SessionEntry, SessionId, Version};
use crate::name;
use crate::partition::PARTITIONS_MAX;
use crate::store::{Revision, Token};
use crate::worker::{WORKER_NAME_BYTES_MAX, WORKERS_MAX};

/// Sessions that a root can name: those of all workers twice over.
const SESSIONS_MAX: usize = 2 * WORKERS_MAX;
const NUMBER_BITS: u32 = 20;

/// Sessions and entries of a root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Base {
    pub(super) sessions: Vec<SessionEntry>,
    pub(super) holdings: Vec<Holding>,
}

impl Base {
    pub(super) fn encode(sessions: &[SessionEntry], holdings: &[Holding]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(sessions.len() as u64);
        for entry in sessions {
            put_session(&mut writer, entry);
        }
        let stamps = Stamps::of(holdings.iter());
        stamps.put(&mut writer);
        writer.number(holdings.len() as u64);
        let mut last = None;
        for holding in holdings {
            stamps.put_holding(&mut writer, holding, &mut last);
        }
        writer.into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut reader = Reader::plain("root's base", bytes);
        let count = reader.count(SESSIONS_MAX)?;
        let sessions: Vec<_> = (0..count)
            .map(|_| read_session(&mut reader))
            .collect::<Result<_, _>>()?;
        let stamps = Stamps::read(&mut reader)?;
        let count = reader.count(PARTITIONS_MAX)?;
        let mut last = None;
        let holdings = (0..count)
            .map(|_| read_holding(&mut reader, &stamps, sessions.len(), &mut last))
            .collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { sessions, holdings })
    }

    /// What turns this into `sessions` and `holdings`, over the same list of
    /// partitions.
    pub(super) fn difference(&self, sessions: &[SessionEntry], holdings: &[Holding]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(sessions.len() as u64);
        let changed: Vec<_> = changes(&self.sessions, sessions).collect();
        writer.number(changed.len() as u64);
        for index in changed {
            writer.number(index as u64);
            put_session(&mut writer, &sessions[index]);
        }
        let changed: Vec<_> = changes(&self.holdings, holdings).collect();
        let stamps = Stamps::of(changed.iter().map(|index| &holdings[*index]));
        stamps.put(&mut writer);
        writer.number(changed.len() as u64);
        let (mut next, mut last) = (0, None);
        for index in changed {
            writer.number((index - next) as u64);
            stamps.put_holding(&mut writer, &holdings[index], &mut last);
            next = index + 1;
        }
        writer.into_bytes()
    }

    /// This, with a difference applied.
    pub(super) fn changed_by(&self, difference: &[u8]) -> Result<Self, Invalid> {
        let mut reader = Reader::plain("root's changes", difference);
        let mut sessions = self.sessions.clone();
        let wanted = reader.number()?;
        let changed = reader.count(SESSIONS_MAX)?;
        let length = usize::try_from(wanted).unwrap_or(usize::MAX);
        if length > (sessions.len() + changed).min(SESSIONS_MAX) {
            return Err(reader.wrong(wanted, "is more sessions than are named"));
        }
        sessions.truncate(length);
        for _ in 0..changed {
            let index = reader.number()?;
            let entry = read_session(&mut reader)?;
            match usize::try_from(index) {
                Ok(index) if index < sessions.len() => sessions[index] = entry,
                Ok(index) if index == sessions.len() && index < length => sessions.push(entry),
                _ => return Err(reader.wrong(index, "is not the place of a session")),
            }
        }
        if sessions.len() != length {
            return Err(reader.wrong(length, "is not how many sessions are named"));
        }
        let mut holdings = self.holdings.clone();
        let stamps = Stamps::read(&mut reader)?;
        let changed = reader.count(PARTITIONS_MAX)?;
        let (mut next, mut last) = (0_usize, None);
        for _ in 0..changed {
            let gap = reader.number()?;
            let index = usize::try_from(gap)
                .ok()
                .and_then(|gap| next.checked_add(gap));
            let slot = index.and_then(|index| holdings.get_mut(index));
            let slot = slot.ok_or_else(|| reader.wrong(gap, "leads past the last partition"))?;
            *slot = read_holding(&mut reader, &stamps, sessions.len(), &mut last)?;
            next = index.expect("it led to a slot") + 1;
        }
        reader.finish()?;
        let mut named = holdings.iter().filter_map(Holding::session);
        let all_known = named.all(|session| (session as usize) < sessions.len());
        match all_known {
            true => Ok(Self { sessions, holdings }),
            false => Err(Invalid::new(
                "root's changes",
                "a session",
                "is held by but not named",
            )),
        }
    }
}

/// The indices at which `new` is not what `old` was.
fn changes<'a, T: PartialEq>(old: &'a [T], new: &'a [T]) -> impl Iterator<Item = usize> + 'a {
    (0..new.len()).filter(|index| old.get(*index) != Some(&new[*index]))
}

fn put_session(writer: &mut Writer, entry: &SessionEntry) {
    writer.wide(entry.session.0);
    writer.text(&entry.worker);
    writer.number(entry.seen.get());
}

fn read_session(reader: &mut Reader<'_>) -> Result<SessionEntry, Invalid> {
    let (session, worker) = (reader.wide()?, reader.text(WORKER_NAME_BYTES_MAX)?);
    name::check("worker id", worker, WORKER_NAME_BYTES_MAX)?;
    let seen = Revision::new(reader.number()?);
    Ok(SessionEntry {
        session: SessionId(session),
        worker: worker.into(),
        seen: seen.ok_or_else(|| reader.wrong(0, "is no revision"))?,
    })
}

/// Tokens and versions, each once. Both are an epoch and a number.
struct Stamps {
    sorted: Vec<u64>,
}

impl Stamps {
    fn of<'a>(holdings: impl Iterator<Item = &'a Holding>) -> Self {
        let found: BTreeMap<u64, ()> = holdings
            .filter_map(|holding| stamp(holding).map(|stamp| (stamp, ())))
            .collect();
        Self {
            sorted: found.into_keys().collect(),
        }
    }

    fn put(&self, writer: &mut Writer) {
        writer.number(self.sorted.len() as u64);
        let mut before = 0;
        for stamp in &self.sorted {
            writer.number(stamp - before);
            before = *stamp;
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let count = reader.count(PARTITIONS_MAX)?;
        let mut before = 0_u64;
        let mut sorted = Vec::with_capacity(count);
        for _ in 0..count {
            let step = reader.number()?;
            let next = before.checked_add(step);
            before = next.ok_or_else(|| reader.wrong(step, "leads past the last stamp"))?;
            sorted.push(before);
        }
        Ok(Self { sorted })
    }

    /// 0 is nobody; else one more than session, whether it is asked back, and
    /// whether the stamp is that of the entry before.
    fn put_holding(&self, writer: &mut Writer, holding: &Holding, last: &mut Option<usize>) {
        let (session, revoking) = match holding {
            Holding::None => return writer.number(0),
            Holding::Held { session, .. } => (*session, 0),
            Holding::Revoking { session, .. } => (*session, 1),
        };
        let stamp = stamp(holding).expect("only nobody has none");
        let place = self
            .sorted
            .binary_search(&stamp)
            .expect("all were collected");
        let same = *last == Some(place);
        let code = (u64::from(session) * 2 + revoking) * 2 + u64::from(same);
        writer.number(code + 1);
        if !same {
            writer.number(place as u64);
            *last = Some(place);
        }
    }
}

fn stamp(holding: &Holding) -> Option<u64> {
    match holding {
        Holding::None => None,
        Holding::Held { token, .. } => Some(token.get().unsigned_abs()),
        Holding::Revoking { since, .. } => {
            Some(since.epoch << NUMBER_BITS | u64::from(since.number))
        }
    }
}

fn read_holding(
    reader: &mut Reader<'_>,
    stamps: &Stamps,
    sessions: usize,
    last: &mut Option<usize>,
) -> Result<Holding, Invalid> {
    let Some(code) = reader.number()?.checked_sub(1) else {
        return Ok(Holding::None);
    };
    if code & 1 == 0 {
        *last = Some(usize::try_from(reader.number()?).unwrap_or(usize::MAX));
    }
    let stamp = last.and_then(|place| stamps.sorted.get(place));
    let stamp = *stamp.ok_or_else(|| reader.wrong("a stamp", "is not in the table"))?;
    let session = u32::try_from(code >> 2).ok();
    let session = session.filter(|session| (*session as usize) < sessions);
    let session =
        session.ok_or_else(|| reader.wrong(code >> 2, "is not the place of a session"))?;
    if code & 2 != 0 {
        let since = Version {
            epoch: stamp >> NUMBER_BITS,
            number: (stamp & ((1 << NUMBER_BITS) - 1)) as u32,
        };
        return Ok(Holding::Revoking { session, since });
    }
    let token = i64::try_from(stamp).ok().and_then(Token::new);
    let token = token.ok_or_else(|| reader.wrong(stamp, "does not fit a token"))?;
    Ok(Holding::Held { session, token })
}
