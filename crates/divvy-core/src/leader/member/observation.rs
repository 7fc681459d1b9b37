//! What is known of workers' records, and since when each is unchanged.
//!
//! That a record has not changed between two looks needs no watch in between:
//! revisions only increase, so the same revision is the same write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::keys::Keys;
use crate::leader::record::{Life, SessionId, WorkerRecord};
use crate::leader::settings::LeaderSettings;
use crate::moment::Moment;
use crate::store::{Entry, Key, Revision};

/// A record as it was last seen.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) id: Box<str>,
    pub(super) revision: Revision,
    pub(super) record: WorkerRecord,
    /// The record as it was read, to know it again without reading it; nothing
    /// if it is known from writing it.
    value: Option<Arc<[u8]>>,
    /// When this revision was first seen.
    pub(super) since: Moment,
    /// When this session was first seen.
    pub(super) met: Moment,
    /// Whether the record could be read. One that could not stands for a
    /// session that nothing is known of but that it may be alive.
    pub(super) is_readable: bool,
}

impl Observed {
    /// When its lease is over for everybody, unless it changes before. The
    /// lease of a record that cannot be read is unknown: it may be the longest
    /// that anybody has.
    pub(super) fn over_at(&self, longest: Duration) -> Moment {
        let lease = if self.is_readable {
            self.record.lease
        } else {
            self.record.lease.max(longest)
        };
        self.since + LeaderSettings::observed(lease)
    }

    pub(super) fn is_live(&self) -> bool {
        self.record.life == Life::Live
    }

    /// Whether the entry is the very write that is known.
    fn is_write(&self, entry: &Entry) -> bool {
        if self.revision != entry.revision {
            return false;
        }
        if let Some(value) = &self.value {
            return Arc::ptr_eq(value, &entry.value) || *value == entry.value;
        }
        WorkerRecord::decode(&entry.value).is_ok_and(|record| is_same_write(&self.record, &record))
    }

    /// Until when its partitions wait for its id to come back.
    pub(super) fn kept_until(&self, grace: Duration) -> Option<Moment> {
        match self.record.life {
            Life::Live => None,
            Life::Fenced => Some(self.since + grace),
            Life::Left { keep_for } => Some(self.since + keep_for),
        }
    }
}

/// What a newly seen record changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// It was known, or is older than what was known.
    None,
    /// A beat, and nothing else.
    Beat,
    /// An acknowledgement besides.
    Ack,
    /// Who is there, or what they can do.
    Membership,
    /// A session that was not renewed was ended.
    Crash,
    /// The revision was another write before: the store has forgotten.
    Impossible,
    /// It is no record that this version can read.
    Unreadable,
}

/// All records that were seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Observation {
    records: BTreeMap<Key, Observed>,
}

impl Observation {
    pub(super) fn get(&self, key: &Key) -> Option<&Observed> {
        self.records.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Observed)> {
        self.records.iter()
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = &Observed> {
        self.records.values()
    }

    /// Takes in a record. What is older than what is known is nothing; a bad
    /// one isolates its own worker only.
    pub(super) fn see(&mut self, entry: &Entry, now: Moment) -> News {
        let known = self.records.get_mut(&entry.key);
        let at = known.as_ref().map(|known| known.revision);
        if at.is_some_and(|at| at > entry.revision) {
            return News::None;
        }
        if let Some(known) = known.as_ref().filter(|_| at == Some(entry.revision))
            && let Some(value) = &known.value
            && (Arc::ptr_eq(value, &entry.value) || *value == entry.value)
        {
            return News::None;
        }
        let value = Some(Arc::clone(&entry.value));
        let Ok(record) = WorkerRecord::decode(&entry.value) else {
            if at == Some(entry.revision) {
                return News::None;
            }
            return self.see_unreadable(entry, now);
        };
        if let Some(known) = known.as_ref().filter(|_| at == Some(entry.revision)) {
            return match is_same_write(&known.record, &record) {
                true => News::None,
                false => News::Impossible,
            };
        }
        let Some(known) = known else {
            let Some(id) = Keys::id_of(&entry.key) else {
                return News::None;
            };
            let observed = Observed {
                id,
                revision: entry.revision,
                record,
                value,
                since: now,
                met: now,
                is_readable: true,
            };
            self.records.insert(entry.key.clone(), observed);
            return News::Membership;
        };
        let news = difference(&known.record, &record);
        if known.record.session != record.session {
            known.met = now;
        }
        known.revision = entry.revision;
        known.record = record;
        known.value = value;
        known.since = now;
        known.is_readable = true;
        news
    }

    /// Something other than a record is stored under a worker's key. The
    /// session that wrote there before cannot renew any more and has lost its
    /// authority a lease later: from then on the id can be fenced or claimed
    /// like any other.
    fn see_unreadable(&mut self, entry: &Entry, now: Moment) -> News {
        let Some(id) = Keys::id_of(&entry.key) else {
            return News::None;
        };
        let known = self.records.get(&entry.key);
        let lease = known.map_or(Duration::ZERO, |known| known.record.lease);
        let observed = Observed {
            id,
            revision: entry.revision,
            record: WorkerRecord::of_nobody("", SessionId(0), Life::Live, lease),
            value: Some(Arc::clone(&entry.value)),
            since: now,
            met: now,
            is_readable: false,
        };
        self.records.insert(entry.key.clone(), observed);
        News::Unreadable
    }

    /// A write of ours made the record this.
    pub(super) fn wrote(
        &mut self,
        key: &Key,
        revision: Revision,
        record: WorkerRecord,
        now: Moment,
    ) {
        let Some(id) = Keys::id_of(key) else { return };
        let observed = Observed {
            id,
            revision,
            record,
            value: None,
            since: now,
            met: now,
            is_readable: true,
        };
        self.records.insert(key.clone(), observed);
    }

    /// Every record counts as seen just now: this process cannot tell how long
    /// it has not looked.
    pub(super) fn restart(&mut self, now: Moment) {
        for observed in self.records.values_mut() {
            if observed.is_live() {
                observed.since = now;
            }
        }
    }

    /// What was known of a record did not hold: what was read counts instead,
    /// also if it is older.
    pub(super) fn correct(&mut self, key: &Key, found: Option<&Entry>) {
        let known = self.records.get(key).map(|known| known.revision);
        let is_below = found.is_none_or(|entry| known.is_some_and(|known| entry.revision < known));
        if is_below {
            self.records.remove(key);
        }
    }

    /// Keeps of what is known only the writes that a listing shows too, and live
    /// records that it does not show at all: it may be stale, and who is gone
    /// for good is found out by the next write over its record.
    pub(super) fn relearn(&mut self, listed: &[Entry]) {
        let listed: BTreeMap<&Key, &Entry> =
            listed.iter().map(|entry| (&entry.key, entry)).collect();
        self.records.retain(|key, known| {
            let entry = listed.get(key);
            entry.map_or_else(|| known.is_live(), |entry| known.is_write(entry))
        });
    }

    pub(super) fn forget(&mut self) {
        self.records.clear();
    }
}

fn is_same_write(one: &WorkerRecord, other: &WorkerRecord) -> bool {
    (one.session, one.beat, one.life) == (other.session, other.beat, other.life)
}

fn difference(before: &WorkerRecord, after: &WorkerRecord) -> News {
    let same_session = before.session == after.session;
    if same_session && before.life == Life::Live && after.life == Life::Fenced {
        return News::Crash;
    }
    // From its second beat on a session is eligible.
    let same_member = same_session
        && before.life == after.life
        && (before.beat > 1) == (after.beat > 1)
        && before.health == after.health
        && before.weight == after.weight
        && before.zone == after.zone
        && before.lease == after.lease
        && before.refresh == after.refresh
        && before.alarm == after.alarm
        && before.unable == after.unable;
    if !same_member {
        return News::Membership;
    }
    let same_ack = before.acked == after.acked && before.stopping == after.stopping;
    if same_ack { News::Beat } else { News::Ack }
}
