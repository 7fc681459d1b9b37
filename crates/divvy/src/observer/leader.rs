//! A cluster in leader mode, seen from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use divvy_core::leader::{
    AssembleError, Committed, Holding, Keys, LeaderRecord, LeaderSettings, Life, Lifecycle,
    RootHead, SessionId, WorkerRecord,
};
use divvy_core::lease::Misalignment;
use divvy_core::store::{Expected, Outcome, Revision, StoreError};
use divvy_core::{Control, Health, Moment, MoveEntry};

use super::Beat;
use super::mode::Mode;
use super::snapshot::{PartitionStatus, Snapshot, WorkerLife, WorkerStatus};
use crate::store::KeyValue;

/// How often a root is read again because it was replaced meanwhile.
const ROOTS_MAX: usize = 10;

/// What is in the store.
pub(super) struct Seen {
    store: String,
    leader: Option<LeaderRecord>,
    committed: Option<Committed>,
    workers: Vec<(Box<str>, WorkerRecord)>,
    control: Control,
    problems: Vec<String>,
}

pub(super) async fn look(store: &dyn KeyValue) -> Result<Seen, StoreError> {
    let keys = Keys::default();
    let mut problems = Vec::new();
    let (leader, records) = tokio::try_join!(store.get(&keys.leader), store.list(&keys.workers))?;
    let leader = leader.and_then(|entry| match LeaderRecord::decode(&entry.value) {
        Ok(record) => Some(record),
        Err(error) => {
            problems.push(format!(
                "who leads, the key {}, cannot be read: {error}",
                keys.leader
            ));
            None
        }
    });
    let mut workers = Vec::new();
    for entry in records {
        let Some(id) = Keys::id_of(&entry.key) else {
            continue;
        };
        match WorkerRecord::decode(&entry.value) {
            Ok(record) => workers.push((id, record)),
            Err(error) => problems.push(format!("the record of '{id}' cannot be read: {error}")),
        }
    }
    let control = match control(store).await {
        Ok((control, _)) => control,
        Err(error) => {
            problems.push(error.to_string());
            Control::default()
        }
    };
    Ok(Seen {
        store: store.describe(),
        leader,
        committed: root(store, &mut problems).await?,
        workers,
        control,
        problems,
    })
}

/// The root with its chunks.
async fn root(
    store: &dyn KeyValue,
    problems: &mut Vec<String>,
) -> Result<Option<Committed>, StoreError> {
    let keys = Keys::default();
    let mut why = String::new();
    for _ in 0..ROOTS_MAX {
        let Some(entry) = store.get(&keys.root).await? else {
            return Ok(None);
        };
        let head = match RootHead::decode(&entry.value) {
            Ok(head) => head,
            Err(error) => {
                why = error.to_string();
                break;
            }
        };
        let mut chunks = BTreeMap::new();
        for key in head.chunk_keys(None) {
            if let Some(chunk) = store.get(&key).await? {
                chunks.insert(key, chunk.value);
            }
        }
        match head.assemble(None, |key| chunks.get(key).cloned()) {
            Ok(committed) => return Ok(Some(committed)),
            // There may be a newer one by now.
            Err(AssembleError::Missing(key)) => why = format!("its chunk {key} is not there"),
            Err(AssembleError::Invalid(error)) => {
                why = error.to_string();
                break;
            }
        }
    }
    problems.push(format!(
        "the assignment, the key {}, cannot be read: {why}",
        keys.root
    ));
    Ok(None)
}

/// What is seen, by what was seen before.
pub(super) fn judge(seen: Seen, beats: &mut BTreeMap<Box<str>, Beat>, now: Moment) -> Snapshot {
    let leads = seen.leader.as_ref().map(|leader| leader.session);
    let kept = seen.committed.as_ref().map(kept_sessions);
    // Without an assignment nobody can have handed anything on.
    let is_kept = |session| kept.as_ref().is_none_or(|kept| kept.contains(&session));
    beats.retain(|id, _| seen.workers.iter().any(|(known, _)| known == id));
    let workers = seen.workers.iter().map(|(id, record)| WorkerStatus {
        name: id.to_string(),
        // First: it takes in what is seen.
        life: life(id, record, is_kept(record.session), beats, now),
        healthy: record.health == Health::Healthy,
        weight: record.weight,
        zone: record.zone.as_deref().map(str::to_owned),
        instance: Some(record.instance.to_string()),
        leads: leads == Some(record.session) && record.life == Life::Live,
        cordoned: seen.control.cordoned.contains(&**id),
        drained: seen.control.drained.contains(&**id),
        owned: 0,
        lease: Some(record.lease),
        renewed: renewed(id, beats, now),
        serves: None,
        max_partitions: None,
    });
    let workers = workers.collect();
    let root = seen.committed.as_ref().map(|committed| &committed.root);
    let snapshot = Snapshot {
        mode: Mode::Leader,
        store: seen.store,
        version: root.map(|root| root.version.to_string()),
        lifecycle: root.map(|root| match root.lifecycle {
            Lifecycle::ColdStart => "cold_start",
            Lifecycle::PostColdStart => "post_cold_start",
            Lifecycle::Stable => "stable",
        }),
        quarantine: root.is_some_and(|root| root.quarantine),
        workers,
        partitions: seen
            .committed
            .as_ref()
            .map_or_else(Vec::new, |committed| partitions(committed, &seen.control)),
        wishes: seen.control,
        problems: seen.problems,
        took: Duration::ZERO,
    };
    snapshot.counted()
}

/// The sessions that have partitions.
fn kept_sessions(committed: &Committed) -> BTreeSet<SessionId> {
    let root = &committed.root;
    let holders = root.holdings.iter().filter_map(|holding| match holding {
        Holding::Held { session, .. } => root.sessions.get(*session as usize),
        _ => None,
    });
    holders.map(|entry| entry.session).collect()
}

/// A worker that left for a while is away for as long as partitions are kept
/// for it: no clock tells when it left.
fn life(
    id: &str,
    record: &WorkerRecord,
    is_kept: bool,
    beats: &mut BTreeMap<Box<str>, Beat>,
    now: Moment,
) -> WorkerLife {
    match record.life {
        Life::Fenced => return WorkerLife::Fenced,
        Life::Left { keep_for } if is_kept && !keep_for.is_zero() => return WorkerLife::Away,
        Life::Left { .. } => return WorkerLife::Left,
        Life::Live => {}
    }
    let first = Beat {
        session: record.session,
        beat: record.beat,
        since: now,
        is_beating: false,
    };
    let known = beats.entry(id.into()).or_insert(first);
    if (known.session, known.beat) != (record.session, record.beat) {
        *known = Beat {
            is_beating: true,
            ..first
        };
    }
    if now.since(known.since) > LeaderSettings::observed(record.lease) {
        WorkerLife::Silent
    } else if known.is_beating {
        WorkerLife::Live
    } else {
        WorkerLife::Unknown
    }
}

/// How long ago a worker was seen to renew its lease.
fn renewed(id: &str, beats: &BTreeMap<Box<str>, Beat>, now: Moment) -> Option<Duration> {
    let beat = beats.get(id).filter(|beat| beat.is_beating);
    beat.map(|beat| now.since(beat.since))
}

fn partitions(committed: &Committed, control: &Control) -> Vec<PartitionStatus> {
    let root = &committed.root;
    let owner = |session: u32| {
        let entry = root.sessions.get(session as usize);
        entry.map(|entry| entry.worker.to_string())
    };
    let entries = committed.partitions.as_slice().iter();
    let entries = entries
        .zip(committed.partitions.loads())
        .zip(&root.holdings);
    let status = entries.map(|((partition, load), holding)| {
        let (owner, token, asked_back) = match *holding {
            Holding::None => (None, None, false),
            Holding::Held { session, token } => (owner(session), Some(token), false),
            Holding::Revoking { session, .. } => (owner(session), None, true),
        };
        let is_quarantined = root.quarantine && owner.is_none();
        let name = partition.as_str().to_owned();
        PartitionStatus {
            owner,
            token,
            asked_back,
            orphaned: false,
            foreign: false,
            lease_left: None,
            desired: None,
            misaligned: is_quarantined.then(|| Misalignment::Quarantine.as_str()),
            weight: load as f64,
            pinned: control.pinned.get(&name).cloned(),
            name,
        }
    });
    status.collect()
}

pub(super) async fn moves(store: &dyn KeyValue) -> Result<Vec<MoveEntry>, StoreError> {
    let log = store.get(&Keys::default().moves).await?;
    let entries = log.map(|entry| MoveEntry::decode_log(&entry.value));
    Ok(entries.transpose()?.unwrap_or_default())
}

pub(super) async fn control(
    store: &dyn KeyValue,
) -> Result<(Control, Option<Revision>), StoreError> {
    let Some(entry) = store.get(&Keys::default().control).await? else {
        return Ok((Control::default(), None));
    };
    let control = Control::decode(&entry.value)
        .map_err(|_error| super::unreadable("the key ctl of this cluster"))?;
    Ok((control, Some(entry.revision)))
}

/// What the wishes have become, unless somebody else was faster.
pub(super) async fn change(
    store: &dyn KeyValue,
    change: &mut impl FnMut(&mut Control),
) -> Result<Option<Control>, StoreError> {
    let (mut control, revision) = control(store).await?;
    change(&mut control);
    let expected: Expected = revision.into();
    let key = Keys::default().control;
    match store
        .compare_and_set(&key, expected, &control.encode())
        .await?
    {
        Outcome::Done(_) => Ok(Some(control)),
        Outcome::Conflict => Ok(None),
    }
}
