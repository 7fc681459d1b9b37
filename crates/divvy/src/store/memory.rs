//! Stores in the memory of this process: the reference semantics, shared.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::Moment;
use divvy_core::store::{
    Acquired, Beaten, Change, Claim, Entry, Expected, GroupDocument, Heartbeat, Holder,
    Incarnation, Key, KeyValueTable, LeaseKey, LeaseName, LeaseNotice, LeaseTable, Member, Nonce,
    Outcome, Prefix, Revision, SessionStart, StoreError, StoreTime, Tenure, WorkerId, check_moves,
};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::bounds::{
    VALUE_BYTES_MAX, check_batch, check_group, check_listed, check_ttl, check_value, check_wishes,
    checked_beat,
};
use super::connection::{Connection, ConnectionReport};
use super::notices::{LeaseNotices, NoticeBoard};
use super::watch::{Hint, Hints, Watch};
use super::{KeyValue, Leases, Store, clock};

/// Changes that wait for a slow watch; beyond, it lists everything.
const CHANGES_WAITING_MAX: usize = 1024;

/// A key-value store for the members of one process. Clones share it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use divvy::store::{Expected, Key, KeyValue, MemoryKeyValue};
///
/// let store = MemoryKeyValue::new();
/// let key = Key::new(["leader"])?;
/// let first = store.compare_and_set(&key, Expected::Absent, b"alpha").await?;
/// let revision = first.done().expect("nobody was there before");
///
/// // Whoever does not know what is there has lost, which is no error.
/// assert!(store.compare_and_set(&key, Expected::Absent, b"beta").await?.is_conflict());
/// let known = Expected::At(revision);
/// assert!(store.compare_and_set(&key, known, b"beta").await?.done().is_some());
/// # Ok::<(), divvy::store::StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct MemoryKeyValue {
    shared: Arc<SharedKeyValue>,
}

#[derive(Debug)]
struct SharedKeyValue {
    table: Mutex<KeyValueTable>,
    changes: broadcast::Sender<Change>,
    connection: ConnectionReport,
}

impl MemoryKeyValue {
    /// An empty store.
    pub fn new() -> Self {
        let shared = SharedKeyValue {
            table: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES_WAITING_MAX),
            connection: ConnectionReport::connected(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn table(&self) -> MutexGuard<'_, KeyValueTable> {
        let table = self.shared.table.lock();
        table.unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: Change) {
        // Nobody watching is as good as everyone told.
        let _watchers = self.shared.changes.send(change);
    }
}

impl Default for MemoryKeyValue {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for MemoryKeyValue {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        Ok(Incarnation::new("memory"))
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.connection.subscribe()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }

    fn forgets(&self) -> bool {
        false
    }
}

#[async_trait]
impl KeyValue for MemoryKeyValue {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        Ok(self.table().get(key))
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        check_value(value, VALUE_BYTES_MAX)?;
        // Told while the table is locked, so that changes come in order.
        let mut table = self.table();
        let outcome = table.compare_and_set(key, expected, value);
        if !outcome.is_conflict()
            && let Some(entry) = table.get(key)
        {
            self.tell(Change::Put(entry));
        }
        Ok(outcome)
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let mut table = self.table();
        let outcome = table.delete(key, revision);
        if let Outcome::Done(deletion) = outcome {
            self.tell(Change::Deleted(key.clone(), deletion));
        }
        Ok(outcome)
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        let entries = self.table().list(prefix);
        check_listed(entries.len())?;
        Ok(entries)
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        let hints = Box::new(MemoryHints(self.shared.changes.subscribe()));
        Ok(Watch::start(Arc::new(self.clone()), prefix.clone(), hints))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }
}

struct MemoryHints(broadcast::Receiver<Change>);

#[async_trait]
impl Hints for MemoryHints {
    async fn next(&mut self) -> Hint {
        match self.0.recv().await {
            Ok(change) => Hint::Change(change),
            Err(broadcast::error::RecvError::Lagged(_)) => Hint::Missed,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// A lease store for the members of one process. Clones share it; so do
/// members of [other clusters](MemoryLeases::of_cluster).
///
/// It expires by tokio's clock, so that a test with paused time can step it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use std::time::Duration;
/// use divvy::store::{Acquired, Claim, LeaseKey, LeaseName, Leases, MemoryLeases, Nonce};
///
/// let store = MemoryLeases::new("shop")?;
/// let (ada, bob) = (LeaseName::new("worker", "ada")?, LeaseName::new("worker", "bob")?);
/// let claim = |nonce| Claim { key: LeaseKey::new("orders", 7).unwrap(), nonce: Nonce::new(nonce) };
/// let ttl = Duration::from_secs(30);
/// assert!(matches!(store.acquire(&ada, &[claim(1)], ttl).await?[0], Acquired::Granted(_)));
/// assert_eq!(store.acquire(&bob, &[claim(2)], ttl).await?[0], Acquired::Held);
/// # Ok::<(), divvy::store::StoreError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct MemoryLeases {
    cluster: LeaseName,
    shared: Arc<SharedLeases>,
}

#[derive(Debug)]
struct SharedLeases {
    table: Mutex<LeaseTable>,
    notices: NoticeBoard,
    connection: ConnectionReport,
    origin: Instant,
}

impl MemoryLeases {
    /// An empty store, seen by the members of `cluster`.
    pub fn new(cluster: &str) -> Result<Self, StoreError> {
        let shared = SharedLeases {
            table: Mutex::default(),
            notices: NoticeBoard::default(),
            connection: ConnectionReport::connected(),
            origin: Instant::now(),
        };
        Ok(Self {
            cluster: LeaseName::new("cluster", cluster)?,
            shared: Arc::new(shared),
        })
    }

    /// The same store, seen by the members of another cluster.
    pub fn of_cluster(&self, cluster: &str) -> Result<Self, StoreError> {
        Ok(Self {
            cluster: LeaseName::new("cluster", cluster)?,
            shared: Arc::clone(&self.shared),
        })
    }

    fn table(&self) -> MutexGuard<'_, LeaseTable> {
        let table = self.shared.table.lock();
        table.unwrap_or_else(PoisonError::into_inner)
    }

    fn time(&self) -> StoreTime {
        StoreTime {
            now: Moment::from_origin(self.shared.origin.elapsed()),
            unix_ms: clock::unix_ms(),
        }
    }

    fn id_of(&self, worker: &LeaseName) -> WorkerId {
        WorkerId {
            cluster: self.cluster.clone(),
            name: worker.clone(),
        }
    }
}

#[async_trait]
impl Store for MemoryLeases {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        Ok(Incarnation::new("memory"))
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.connection.subscribe()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }
}

#[async_trait]
impl Leases for MemoryLeases {
    fn cluster(&self) -> &str {
        self.cluster.as_str()
    }

    async fn acquire(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, StoreError> {
        check_batch(claims.len())?;
        check_ttl("lease ttl", ttl)?;
        let (mut table, time, id) = (self.table(), self.time(), self.id_of(worker));
        table.sweep(time);
        let each = claims.iter();
        Ok(each
            .map(|claim| table.acquire(time, &id, claim, ttl))
            .collect())
    }

    async fn renew(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, StoreError> {
        check_batch(claims.len())?;
        check_ttl("lease ttl", ttl)?;
        let (mut table, time, id) = (self.table(), self.time(), self.id_of(worker));
        let each = claims.iter();
        Ok(each
            .map(|claim| table.renew(time, &id, claim, ttl))
            .collect())
    }

    async fn release(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
    ) -> Result<Vec<Tenure>, StoreError> {
        check_batch(claims.len())?;
        let (mut table, time, id) = (self.table(), self.time(), self.id_of(worker));
        let mut tenures = Vec::with_capacity(claims.len());
        for claim in claims {
            let tenure = table.release(time, &id, claim);
            if tenure == Tenure::Current {
                let released = LeaseNotice::Released(claim.key.clone());
                self.shared.notices.post(released);
            }
            tenures.push(tenure);
        }
        Ok(tenures)
    }

    async fn holders(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, StoreError> {
        check_batch(keys.len())?;
        let (table, time) = (self.table(), self.time());
        Ok(keys.iter().map(|key| table.holder(time, key)).collect())
    }

    async fn open_session(
        &self,
        worker: &LeaseName,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, StoreError> {
        check_ttl("session ttl", ttl)?;
        let id = self.id_of(worker);
        Ok(self.table().open_session(self.time(), &id, session, ttl))
    }

    async fn beat(&self, worker: &LeaseName, heartbeat: &Heartbeat) -> Result<Beaten, StoreError> {
        let info = checked_beat(heartbeat)?;
        let (mut table, time, id) = (self.table(), self.time(), self.id_of(worker));
        let before = table.members(time, &self.cluster);
        let spans = (heartbeat.heartbeat_ttl, heartbeat.session_ttl);
        let tenure = table.beat(time, &id, heartbeat.session, &info, spans);
        let quarantine = table.report(&heartbeat.report);
        if table.members(time, &self.cluster) != before {
            self.shared.notices.post(LeaseNotice::Members);
        }
        Ok(Beaten { tenure, quarantine })
    }

    async fn leave(&self, worker: &LeaseName, session: Nonce) -> Result<Tenure, StoreError> {
        let id = self.id_of(worker);
        let tenure = self.table().leave(self.time(), &id, session);
        if tenure == Tenure::Current {
            self.shared.notices.post(LeaseNotice::Members);
        }
        Ok(tenure)
    }

    async fn members(&self) -> Result<Vec<Member>, StoreError> {
        Ok(self.table().members(self.time(), &self.cluster))
    }

    async fn mark_moved(&self, keys: &[LeaseKey], cooldown: Duration) -> Result<(), StoreError> {
        check_batch(keys.len())?;
        check_ttl("cooldown", cooldown)?;
        let (mut table, time) = (self.table(), self.time());
        for key in keys {
            table.mark_moved(time, key, cooldown);
        }
        Ok(())
    }

    async fn cooling(&self, keys: &[LeaseKey]) -> Result<Vec<bool>, StoreError> {
        check_batch(keys.len())?;
        let (table, time) = (self.table(), self.time());
        Ok(keys.iter().map(|key| table.is_cooling(time, key)).collect())
    }

    async fn groups(&self) -> Result<Vec<GroupDocument>, StoreError> {
        Ok(self.table().groups())
    }

    async fn set_group(&self, name: &LeaseName, json: &str) -> Result<(), StoreError> {
        check_group(json)?;
        self.table().set_group(name, json);
        self.shared
            .notices
            .post(LeaseNotice::Group(name.to_string()));
        Ok(())
    }

    async fn remove_group(&self, name: &LeaseName) -> Result<bool, StoreError> {
        let removed = self.table().remove_group(name);
        self.shared
            .notices
            .post(LeaseNotice::Group(name.to_string()));
        Ok(removed)
    }

    async fn wishes(&self) -> Result<Option<String>, StoreError> {
        Ok(self.table().wishes(&self.cluster))
    }

    async fn set_wishes(&self, before: Option<&str>, wishes: &str) -> Result<bool, StoreError> {
        check_wishes(wishes)?;
        let is_written = self.table().set_wishes(&self.cluster, before, wishes);
        if is_written {
            self.shared.notices.post(LeaseNotice::Members);
        }
        Ok(is_written)
    }

    async fn log_moves(&self, moves: &[String]) -> Result<(), StoreError> {
        check_moves(moves)?;
        self.table().log_moves(&self.cluster, moves);
        Ok(())
    }

    async fn moves(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.table().moves(&self.cluster))
    }

    async fn notices(&self) -> Result<LeaseNotices, StoreError> {
        Ok(self.shared.notices.subscribe())
    }
}
