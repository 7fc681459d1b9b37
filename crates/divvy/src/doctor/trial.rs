//! Trials: what members do, done once, to find out whether this client may.

use std::time::Duration;

use divvy_core::store::{
    Acquired, Claim, Expected, Heartbeat, Key, LeaseKey, LeaseName, Nonce, Outcome, Prefix,
    SessionStart, StoreError, Tenure, WorkerInfo,
};
use tokio::time::{Instant, timeout};

use super::Finding;
use super::latency::{self, Measure};
use crate::store::{
    KeyValue, Leases, Notice, StoreSettings, StoreUrl, open_key_value, open_leases,
};

/// Writes whose time is taken.
const WRITES: usize = 100;
/// How long a trial's lease runs.
const TTL: Duration = Duration::from_secs(5);
/// How long a watch may take to tell of a change.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// A group that nobody serves.
const GROUP: &str = "divvy-doctor";

const RECORDS: &str = "records (leader mode)";
const LEASES: &str = "leases (lease mode)";
const DELAYED: &str =
    "docs/operating.md says what a watch needs; without it everything works, later";

/// What leader mode does.
pub(super) async fn of_records(
    url: &StoreUrl,
    settings: &StoreSettings,
    lease: Option<Duration>,
) -> Vec<Finding> {
    let store = match open_key_value(url, settings).await {
        Ok(store) => store,
        Err(error) => return vec![Finding::failed(RECORDS, &error)],
    };
    // No member has such a key.
    let name = format!("doctor-{:016x}", fastrand::u64(..));
    let key = Key::new([name.as_str()]).expect("letters, digits and - make a key");
    match records(&*store, &key).await {
        Ok((mut findings, took)) => {
            findings.push(latency::judged(&Measure::of_records(), took, lease));
            findings
        }
        Err(error) => {
            let mut findings = vec![Finding::failed(RECORDS, &error)];
            if removed(&*store, &key).await.is_err() {
                let found = format!("the key '{key}' is left in the store");
                findings.push(Finding::note("left", found, "delete it"));
            }
            findings
        }
    }
}

async fn records(
    store: &dyn KeyValue,
    key: &Key,
) -> Result<(Vec<Finding>, Vec<Duration>), StoreError> {
    let mut watch = store.watch(&Prefix::only(key.clone())).await?;
    let mut expected = Expected::Absent;
    let mut took = Vec::with_capacity(WRITES);
    for number in 0..WRITES {
        let begun = Instant::now();
        let value = number.to_le_bytes();
        let written = store.compare_and_set(key, expected, &value).await?;
        took.push(begun.elapsed());
        match written {
            Outcome::Done(revision) => expected = Expected::At(revision),
            Outcome::Conflict => {
                let words = format_args!("somebody else writes '{key}'");
                return Err(StoreError::unavailable(words));
            }
        }
    }
    if store.compare_and_set(key, Expected::Absent, b"").await? != Outcome::Conflict {
        return Err(StoreError::unfit(
            "the store accepts a write whose condition does not hold",
        ));
    }
    if store.get(key).await?.is_none() || store.list(&Prefix::only(key.clone())).await?.len() != 1 {
        return Err(StoreError::unfit(
            "the store does not give back what was written",
        ));
    }
    let mut findings = Vec::new();
    let told = timeout(TOLD_WITHIN, async {
        while !matches!(watch.next().await?, Notice::Changed(_)) {}
        Ok::<(), StoreError>(())
    });
    match told.await {
        Ok(told) => {
            told?;
            findings.push(Finding::good(
                RECORDS,
                "this client may read, write, list, watch and delete them",
            ));
        }
        Err(_elapsed) => findings.push(Finding::note(
            RECORDS,
            "they are read and written, but a watch was not told of it",
            DELAYED,
        )),
    }
    removed(store, key).await?;
    Ok((findings, took))
}

async fn removed(store: &dyn KeyValue, key: &Key) -> Result<(), StoreError> {
    if let Some(entry) = store.get(key).await? {
        let _other = store.delete(key, entry.revision).await?;
    }
    Ok(())
}

/// What lease mode does.
pub(super) async fn of_leases(
    url: &StoreUrl,
    settings: &StoreSettings,
    lease: Option<Duration>,
) -> Vec<Finding> {
    let store = match open_leases(url, settings).await {
        Ok(store) => store,
        Err(error) => return vec![Finding::failed(LEASES, &error)],
    };
    let name = format!("doctor-{:016x}", fastrand::u64(..));
    let worker = LeaseName::new("worker", &name).expect("letters, digits and - make a name");
    let session = Nonce::new(fastrand::u128(..));
    let mut took = Vec::with_capacity(WRITES);
    let tried = leases(&*store, &worker, session, &mut took).await;
    // Where that fails, both run out by themselves.
    let left = store.leave(&worker, session).await;
    match tried.and_then(|finding| left.map(|_tenure| finding)) {
        Ok(finding) => vec![finding, latency::judged(&Measure::of_leases(), took, lease)],
        Err(error) => vec![Finding::failed(LEASES, &error)],
    }
}

async fn leases(
    store: &dyn Leases,
    worker: &LeaseName,
    session: Nonce,
    took: &mut Vec<Duration>,
) -> Result<Finding, StoreError> {
    let mut notices = store.notices().await?;
    if let SessionStart::Taken(_) = store.open_session(worker, session, TTL).await? {
        return Err(StoreError::unavailable("somebody else examines the store"));
    }
    // Whoever ranks workers passes it over.
    let info = WorkerInfo {
        healthy: false,
        groups: Some(vec![GROUP.to_owned()]),
        ..WorkerInfo::default()
    };
    let heartbeat = Heartbeat::new(session, info, TTL, TTL);
    let mut beaten = store.beat(worker, &heartbeat).await?.tenure;
    // Also a store that grants nothing yet takes these.
    for _ in 0..WRITES {
        let begun = Instant::now();
        beaten = store.beat(worker, &heartbeat).await?.tenure;
        took.push(begun.elapsed());
    }
    let (_members, _groups) = (store.members().await?, store.groups().await?);
    let (_wishes, _moves) = (store.wishes().await?, store.moves().await?);
    let claims = [Claim {
        key: LeaseKey::new(GROUP, 0)?,
        nonce: Nonce::new(fastrand::u128(..)),
    }];
    let acquired = store.acquire(worker, &claims, TTL).await?;
    match acquired.first() {
        Some(Acquired::Granted(_)) => {}
        Some(Acquired::Quarantined) => {
            let found = "the store is new, has restarted or lost its data: it grants no lease \
                         before agents have waited for the longest one";
            let advice = "start an agent: it waits for its lease and two heartbeats, and says so";
            return Ok(Finding::note(LEASES, found, advice));
        }
        _ => {
            let words = "somebody else examines the store, or did so a moment ago";
            return Err(StoreError::unavailable(words));
        }
    }
    let renewed = store.renew(worker, &claims, TTL).await?;
    let released = store.release(worker, &claims).await?;
    let is_kept = [beaten, renewed[0], released[0]] == [Tenure::Current; 3];
    if !is_kept {
        return Err(StoreError::unfit(
            "a lease was over before it ran out: somebody deletes keys, or the server's clock steps",
        ));
    }
    Ok(match timeout(TOLD_WITHIN, notices.next()).await {
        Ok(_notice) => Finding::good(
            LEASES,
            "this client may take, renew and give back leases, beat, and hear of changes",
        ),
        Err(_elapsed) => Finding::note(
            LEASES,
            "they are taken and given back, but nothing was heard of it",
            DELAYED,
        ),
    })
}
