//! Trials: what members do, done once, to find out whether this client may.

use std::time::Duration;

use divvy_core::lease::Group;
use divvy_core::store::{
    Acquired, Claim, Expected, Heartbeat, Key, LeaseKey, LeaseName, Nonce, Outcome, Prefix,
    SessionStart, StoreError, Tenure, WorkerInfo,
};
use tokio::time::{Instant, timeout};

use super::Finding;
use super::latency::{self, Measure};
use crate::store::{
    KeyValue, Leases, Notice, StoreSettings, StoreUrl, TTL_MIN, erase_leases, open_key_value,
    open_leases,
};

/// Writes whose time is taken.
const WRITES: usize = 100;
/// How long a trial's lease runs.
const TTL: Duration = Duration::from_secs(5);
/// How long a watch may take to tell of a change.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// What the names of trials begin with: of the cluster, the worker and the group.
const TRIAL: &str = "divvy-doctor";

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
    let name = format!("{TRIAL}-{:016x}", fastrand::u64(..));
    // Members of the cluster do not see who is in another one, and the length
    // of a lease is nothing to remember if no quarantine counts.
    let own = StoreSettings {
        cluster: name.clone(),
        restart_quarantine: false,
        ..settings.clone()
    };
    let opened = match open_leases(url, settings).await {
        Ok(store) => open_leases(url, &own).await.map(|own| (store, own)),
        Err(error) => Err(error),
    };
    let (store, own_store) = match opened {
        Ok(stores) => stores,
        Err(error) => return vec![Finding::failed(LEASES, &error)],
    };
    let trial = Trial {
        store: &*store,
        own: &*own_store,
        worker: LeaseName::new("worker", &name).expect("letters, digits and - make a name"),
        session: Nonce::new(fastrand::u128(..)),
        claim: Claim {
            key: LeaseKey::new(&name, 0).expect("letters, digits and - make a name"),
            nonce: Nonce::new(fastrand::u128(..)),
        },
    };
    let mut took = Vec::with_capacity(WRITES);
    let tried = trial.run(&mut took).await;
    // Where that fails, session and lease run out by themselves.
    let left = trial.own.leave(&trial.worker, trial.session).await;
    let group = Group::new(&name, 1).expect("letters, digits and - make a name");
    let erased = erase_leases(url, &own, &[group]).await;
    match tried.and_then(|finding| left.and(erased).map(|()| finding)) {
        Ok(finding) => vec![finding, latency::judged(&Measure::of_leases(), took, lease)],
        Err(error) => vec![Finding::failed(LEASES, &error)],
    }
}

struct Trial<'a> {
    /// The cluster that is asked about, of which nothing is changed.
    store: &'a dyn Leases,
    /// The trial's own.
    own: &'a dyn Leases,
    worker: LeaseName,
    session: Nonce,
    claim: Claim,
}

impl Trial<'_> {
    async fn run(&self, took: &mut Vec<Duration>) -> Result<Finding, StoreError> {
        let (store, worker) = (self.own, &self.worker);
        let mut notices = store.notices().await?;
        if let SessionStart::Taken(_) = store.open_session(worker, self.session, TTL).await? {
            return Err(StoreError::unavailable("somebody else examines the store"));
        }
        let heartbeat = Heartbeat::new(self.session, WorkerInfo::default(), TTL, TTL);
        let mut beaten = store.beat(worker, &heartbeat).await?.tenure;
        for _ in 0..WRITES {
            let begun = Instant::now();
            beaten = store.beat(worker, &heartbeat).await?.tenure;
            took.push(begun.elapsed());
        }
        let (_members, _groups) = (self.store.members().await?, self.store.groups().await?);
        let (_wishes, _moves) = (self.store.wishes().await?, self.store.moves().await?);
        let claims = std::slice::from_ref(&self.claim);
        let acquired = store.acquire(worker, claims, TTL).await?;
        let [Acquired::Granted(_)] = acquired[..] else {
            let words = "somebody else examines the store, or did so a moment ago";
            return Err(StoreError::unavailable(words));
        };
        let renewed = store.renew(worker, claims, TTL).await?;
        let released = store.release(worker, claims).await?;
        let is_kept = [beaten, renewed[0], released[0]] == [Tenure::Current; 3];
        if !is_kept {
            return Err(StoreError::unfit(
                "a lease was over before it ran out: somebody deletes keys, or the server's clock steps",
            ));
        }
        if self.is_quarantined().await? {
            let found = "the store is new, has restarted or lost its data: it grants no lease before \
                         an agent has waited for the longest one";
            let advice = "nothing to do: it ends when a running agent has waited for the longest \
                          lease; if no agent runs, start one";
            return Ok(Finding::note(LEASES, found, advice));
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

    /// Whether members get no leases yet. A lease that is granted here is shorter
    /// than any of theirs.
    async fn is_quarantined(&self) -> Result<bool, StoreError> {
        let claims = std::slice::from_ref(&self.claim);
        let asked = self.store.acquire(&self.worker, claims, TTL_MIN).await?;
        Ok(asked == [Acquired::Quarantined])
    }
}
