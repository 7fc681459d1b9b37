//! A key-value store with one defect at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use divvy::Invalid;
use divvy::store::conformance::{Interruption, KeyValueSubject, Spoilt, Vandal};
use divvy::store::{
    Change, Connection, ConnectionReport, Entry, Expected, Hint, Hints, Incarnation, Key, KeyValue,
    Outcome, Prefix, Revision, Store, StoreError, StoreErrorKind, Watch,
};
use tokio::sync::{broadcast, watch};

use super::interruption::report;
use super::key_value_defects::KeyValueDefect as Defect;

/// Hardly more than the suite needs.
const VALUE_BYTES_MAX: usize = 257;

pub(crate) struct CarelessKeyValues {
    server: Arc<Server>,
}

impl CarelessKeyValues {
    pub(crate) fn new(defect: Defect) -> Self {
        let server = Server {
            defect,
            tables: Mutex::default(),
            changes: broadcast::Sender::new(8192),
            away: watch::Sender::new(false),
            before: Mutex::default(),
            clients: AtomicU64::new(0),
        };
        Self {
            server: Arc::new(server),
        }
    }

    fn client(&self, cluster: &str, aside: bool) -> Arc<Client> {
        let connection = ConnectionReport::connected();
        if !aside && self.server.defect != Defect::ReconnectIsNotTold {
            report(&self.server.away, &connection);
        }
        Arc::new_cyclic(|own| Client {
            own: own.clone(),
            number: self.server.clients.fetch_add(1, Ordering::Relaxed),
            server: Arc::clone(&self.server),
            cluster: cluster.to_owned(),
            aside,
            connection,
            cached: Mutex::default(),
            lists_nothing: false,
        })
    }
}

#[async_trait]
impl KeyValueSubject for CarelessKeyValues {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError> {
        Ok(self.client(cluster, false))
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        Some(self)
    }

    async fn open_aside(&self, cluster: &str) -> Result<Option<Arc<dyn KeyValue>>, StoreError> {
        Ok(Some(self.client(cluster, true)))
    }

    fn vandal(&self) -> Option<&dyn Vandal> {
        Some(self)
    }
}

#[async_trait]
impl Vandal for CarelessKeyValues {
    async fn spoil(&self, cluster: &str, key: &Key, with: Spoilt) -> bool {
        if with == Spoilt::OtherType {
            return false;
        }
        let client = self.client(cluster, true);
        let found = client.find(&self.server.tables(), key).unwrap();
        let expected = Expected::At(found.revision);
        let written = client.compare_and_set(key, expected, with.bytes()).await;
        written.is_ok()
    }
}

/// Whether a vandal has written this.
fn is_spoilt(value: &[u8]) -> bool {
    value == Spoilt::Garbage.bytes()
}

#[async_trait]
impl Interruption for CarelessKeyValues {
    async fn interrupt(&self) {
        self.server.away.send_replace(true);
    }

    async fn resume(&self) {
        if self.server.defect == Defect::InterruptionLosesWrites {
            *self.server.tables() = self.server.before.lock().unwrap().clone();
        }
        self.server.away.send_replace(false);
    }
}

/// A key inside the store: cluster and text.
type Place = (String, String);

#[derive(Debug, Clone, Default)]
struct Tables {
    entries: BTreeMap<Place, (Key, Arc<[u8]>, u64)>,
    last: u64,
    /// Writes since the beginning.
    writes: u64,
}

#[derive(Debug)]
struct Server {
    defect: Defect,
    tables: Mutex<Tables>,
    changes: broadcast::Sender<(u64, String, Change)>,
    away: watch::Sender<bool>,
    /// The tables a few writes ago.
    before: Mutex<Tables>,
    clients: AtomicU64,
}

impl Server {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap()
    }

    fn place(&self, cluster: &str, key: &Key) -> Place {
        let (cluster, text) = (cluster.to_owned(), key.as_str());
        match self.defect {
            Defect::ClustersShareKeys => (String::new(), text.to_owned()),
            Defect::ClustersAndKeysAreJoinedByDots => {
                (String::new(), format!("{cluster}.{}", key.as_str()))
            }
            Defect::NamesIgnoreCase => (cluster, text.to_lowercase()),
            Defect::NamesAreCut => (cluster, text[..text.len().min(512)].to_owned()),
            _ => (cluster, text.to_owned()),
        }
    }
}

#[derive(Debug)]
struct Client {
    own: std::sync::Weak<Self>,
    number: u64,
    server: Arc<Server>,
    cluster: String,
    aside: bool,
    connection: ConnectionReport,
    cached: Mutex<BTreeMap<Key, Option<Entry>>>,
    lists_nothing: bool,
}

impl Client {
    /// Fails while the store is away; others come in between.
    async fn reach(&self, writes: bool) -> Result<(), StoreError> {
        a_moment().await;
        if self.aside || !*self.server.away.borrow() {
            return Ok(());
        }
        match self.server.defect {
            Defect::HangsWithoutStore => std::future::pending().await,
            Defect::ReadWithoutStoreIsUnknown if !writes => Err(StoreError::unknown("away")),
            Defect::WriteWithoutStoreIsUnfit if writes => Err(StoreError::unfit("away")),
            _ => Err(StoreError::unavailable("away")),
        }
    }

    fn find(&self, tables: &Tables, key: &Key) -> Option<Entry> {
        let place = self.server.place(&self.cluster, key);
        let (_, value, revision) = tables.entries.get(&place)?;
        let nothing = value.is_empty() && self.server.defect == Defect::EmptyValueIsAbsent;
        (!nothing).then(|| entry(key, value, *revision))
    }

    fn is_as(&self, found: Option<u64>, expected: Expected) -> bool {
        let defect = self.server.defect;
        match (expected, found) {
            (Expected::Absent, None) => true,
            (Expected::Absent, Some(_)) => defect == Defect::CreationOverwrites,
            (Expected::At(_), None) => defect == Defect::UpdateCreates,
            (Expected::At(at), Some(found)) => match defect {
                Defect::UpdateIgnoresRevision => true,
                Defect::RevisionsAreComparedIn32Bits => at.get() as u32 == found as u32,
                Defect::RevisionsAreSigned => at.get() & i64::MAX as u64 == found,
                _ => at.get() == found,
            },
        }
    }

    fn next_revision(&self, tables: &mut Tables, found: Option<u64>) -> u64 {
        tables.last += 1;
        match self.server.defect {
            Defect::RevisionsBeginAnewAfterDeletion => found.map_or(1, |found| found + 1),
            _ => tables.last,
        }
    }

    fn write(&self, tables: &mut Tables, key: &Key, value: &[u8], revision: u64) {
        let place = self.server.place(&self.cluster, key);
        tables.writes += 1;
        if tables.writes.is_multiple_of(8) && self.server.defect == Defect::InterruptionLosesWrites
        {
            *self.server.before.lock().unwrap() = tables.clone();
        }
        let value: Arc<[u8]> = match self.server.defect {
            Defect::AcknowledgedWriteIsSometimesLost if tables.writes.is_multiple_of(50) => return,
            Defect::ValueIsCutAtTheLimit => value[..value.len().min(VALUE_BYTES_MAX - 1)].into(),
            Defect::ValuesAreText => String::from_utf8_lossy(value).as_bytes().into(),
            _ => value.into(),
        };
        tables
            .entries
            .insert(place, (key.clone(), Arc::clone(&value), revision));
        self.tell(Change::Put(entry(key, &value, revision)));
    }

    fn tell(&self, change: Change) {
        let told = (self.number, self.cluster.clone(), change);
        let _listeners = self.server.changes.send(told);
    }

    fn check_value(&self, value: &[u8]) -> Result<(), StoreError> {
        if value.len() <= VALUE_BYTES_MAX {
            return Ok(());
        }
        match self.server.defect {
            Defect::ValueLimitIsNotChecked | Defect::ValueIsCutAtTheLimit => Ok(()),
            Defect::ValueLimitIsUnfit => Err(StoreError::unfit("too large")),
            _ => Err(Invalid::new("value bytes", value.len(), "is too large").into()),
        }
    }

    fn conflict(&self) -> Result<Outcome<Revision>, StoreError> {
        match self.server.defect {
            Defect::ConflictIsAnError => {
                Err(StoreError::new(StoreErrorKind::Unavailable, "conflict"))
            }
            _ => Ok(Outcome::Conflict),
        }
    }

    fn is_listed(&self, prefix: &Prefix, place: &Place, key: &Key) -> bool {
        let in_cluster = match self.server.defect {
            Defect::ClustersShareKeys => true,
            Defect::ClustersAndKeysAreJoinedByDots => {
                place.1.starts_with(&format!("{}.", self.cluster))
            }
            _ => place.0 == self.cluster,
        };
        let held = match (self.server.defect, prefix.parent()) {
            (Defect::ListsByRawPrefix, Some(parent)) => key.as_str().starts_with(parent.as_str()),
            (Defect::NamesArePatterns, Some(parent)) if parent.parts() == ["*"] => true,
            _ => prefix.holds(key),
        };
        in_cluster && held
    }

    fn page(&self, prefix: &Prefix, from: usize, count: usize) -> Vec<Entry> {
        let tables = self.server.tables();
        let held = tables.entries.iter();
        let held = held.filter(|(place, (key, ..))| self.is_listed(prefix, place, key));
        held.skip(from)
            .take(count)
            .map(|(_, (key, value, revision))| entry(key, value, *revision))
            .collect()
    }
}

#[async_trait]
impl Store for Client {
    fn describe(&self) -> String {
        format!("careless: {:?}", self.server.defect)
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        Ok(match self.server.defect {
            Defect::IncarnationOfEachClient => Incarnation::new(self.number.to_string()),
            _ => Incarnation::new("one"),
        })
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }
}

#[async_trait]
impl KeyValue for Client {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        self.reach(false).await?;
        let found = self.find(&self.server.tables(), key);
        if self.server.defect != Defect::ReadsAreNeverFresh {
            return Ok(found);
        }
        let mut cached = self.cached.lock().unwrap();
        Ok(cached.entry(key.clone()).or_insert(found).clone())
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        let defect = self.server.defect;
        self.check_value(value)?;
        let mut unfinished = Unfinished(Some((self, key, expected, value)));
        let reached = self.reach(true).await;
        unfinished.0 = None;
        if defect != Defect::UnavailableWriteHappens {
            reached.clone()?;
        }
        let found = |tables: &Tables| self.find(tables, key).map(|entry| entry.revision.get());
        let mut right = self.is_as(found(&self.server.tables()), expected);
        if defect == Defect::TwoWinners {
            tokio::task::yield_now().await;
        } else {
            right = self.is_as(found(&self.server.tables()), expected);
        }
        if defect == Defect::TheSameValueIsNoConflict
            && !right
            && let Some(same) = self.find(&self.server.tables(), key)
            && *same.value == *value
        {
            return Ok(Outcome::Done(same.revision));
        }
        if defect == Defect::SpoiltValueCannotBeReplaced {
            let present = self.find(&self.server.tables(), key);
            right &= !present.is_some_and(|entry| is_spoilt(&entry.value));
        }
        if !right && defect != Defect::ConflictWritesAnyway {
            return self.conflict();
        }
        let revision = {
            let mut tables = self.server.tables();
            let found = found(&tables);
            let revision = self.next_revision(&mut tables, found);
            if defect == Defect::SuccessIsSometimesAConflict && revision.is_multiple_of(50) {
                return Ok(Outcome::Conflict);
            }
            let begin = match defect {
                Defect::WritesInTwoSteps => &value[..value.len() / 2],
                _ => value,
            };
            self.write(&mut tables, key, begin, revision);
            revision
        };
        if defect == Defect::WritesInTwoSteps {
            a_moment().await;
            self.write(&mut self.server.tables(), key, value, revision);
        }
        reached?;
        match right {
            true => Ok(Outcome::Done(number(revision))),
            false => self.conflict(),
        }
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let defect = self.server.defect;
        self.reach(true).await?;
        let found = self.find(&self.server.tables(), key);
        let right = match &found {
            Some(entry) => match defect {
                Defect::DeletionIgnoresRevision => true,
                Defect::RevisionsAreComparedIn32Bits | Defect::RevisionsAreSigned => {
                    self.is_as(Some(entry.revision.get()), Expected::At(revision))
                }
                _ => entry.revision == revision,
            },
            None => defect == Defect::DeletionOfNothingSucceeds,
        };
        if defect == Defect::DeletionIsNotAtomic {
            tokio::task::yield_now().await;
        }
        if !right {
            return self.conflict();
        }
        let mut tables = self.server.tables();
        let found = found.map(|entry| entry.revision.get());
        let deletion = number(self.next_revision(&mut tables, found));
        if defect != Defect::DeletionKeepsTheValue {
            tables
                .entries
                .remove(&self.server.place(&self.cluster, key));
        }
        self.tell(Change::Deleted(key.clone(), deletion));
        Ok(Outcome::Done(deletion))
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        self.reach(false).await?;
        let mut entries = match self.server.defect {
            Defect::ListingHangs => std::future::pending().await,
            Defect::ListHoldsOnePage => self.page(prefix, 0, 500),
            Defect::ListMissesWhatIsBeingMoved => {
                let mut all = Vec::new();
                loop {
                    let page = self.page(prefix, all.len(), 5);
                    if page.is_empty() {
                        break all;
                    }
                    all.extend(page);
                    tokio::task::yield_now().await;
                }
            }
            _ if self.lists_nothing => Vec::new(),
            _ => self.page(prefix, 0, usize::MAX),
        };
        match self.server.defect {
            Defect::ListMissesTheLast => drop(entries.pop()),
            Defect::ListIsUnsorted => entries.reverse(),
            Defect::SpoiltValueFailsListings
                if entries.iter().any(|entry| is_spoilt(&entry.value)) =>
            {
                return Err(StoreError::unfit(
                    "a key holds what this store did not write",
                ));
            }
            _ => {}
        }
        Ok(entries)
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        self.reach(false).await?;
        let defect = self.server.defect;
        if defect == Defect::WatchLeaksATask {
            tokio::spawn(std::future::pending::<()>());
        }
        let hints = CarelessHints {
            server: Arc::clone(&self.server),
            own: (self.number, self.cluster.clone()),
            changes: self.server.changes.subscribe(),
            away: self.server.away.subscribe(),
            told: 0,
        };
        let mut store = self.own.upgrade().unwrap();
        if defect == Defect::WatchHasNoBeginning {
            store = Arc::new(Self {
                own: self.own.clone(),
                number: self.number,
                server: Arc::clone(&self.server),
                cluster: self.cluster.clone(),
                aside: self.aside,
                connection: self.connection.clone(),
                cached: Mutex::default(),
                lists_nothing: true,
            });
        }
        let prefix = match defect {
            Defect::WatchReachesOtherPrefixes => Prefix::ALL,
            _ => prefix.clone(),
        };
        Ok(Watch::start(store, prefix, Box::new(hints)))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }
}

/// A write that nobody may be waiting for any more.
struct Unfinished<'a>(Option<(&'a Client, &'a Key, Expected, &'a [u8])>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some((client, key, expected, value)) = self.0 else {
            return;
        };
        let mut tables = client.server.tables();
        let found = client.find(&tables, key).map(|entry| entry.revision.get());
        let defect = client.server.defect;
        if defect == Defect::CancelledWriteIsHalf && client.is_as(found, expected) {
            let revision = client.next_revision(&mut tables, found);
            client.write(&mut tables, key, &value[..value.len() / 2], revision);
        }
    }
}

struct CarelessHints {
    server: Arc<Server>,
    own: (u64, String),
    changes: broadcast::Receiver<(u64, String, Change)>,
    away: watch::Receiver<bool>,
    told: usize,
}

impl CarelessHints {
    fn is_told(&mut self, client: u64, cluster: &str, change: &Change) -> bool {
        self.told += 1;
        let here = cluster == self.own.1;
        match self.server.defect {
            Defect::WatchMissesDeletions => here && matches!(change, Change::Put(_)),
            Defect::WatchMissesOthers => here && client == self.own.0,
            Defect::WatchReachesOtherClusters => true,
            Defect::WatchLosesABurst => here && self.told < 50,
            _ => here,
        }
    }
}

#[async_trait]
impl Hints for CarelessHints {
    async fn next(&mut self) -> Hint {
        loop {
            if *self.away.borrow_and_update() {
                self.away.wait_for(|away| !away).await.unwrap();
                self.changes = self.server.changes.subscribe();
                match self.server.defect {
                    Defect::WatchDoesNotCatchUp => {}
                    _ => return Hint::Missed,
                }
            }
            tokio::select! {
                biased;
                changed = self.away.changed() => changed.unwrap(),
                told = self.changes.recv() => match told {
                    Ok((client, cluster, change)) if self.is_told(client, &cluster, &change) => {
                        return Hint::Change(change);
                    }
                    Ok(_) => {}
                    Err(_lagged) => return Hint::Missed,
                },
            }
        }
    }
}

fn entry(key: &Key, value: &[u8], revision: u64) -> Entry {
    Entry {
        key: key.clone(),
        value: value.into(),
        revision: number(revision),
    }
}

fn number(revision: u64) -> Revision {
    Revision::new(revision).unwrap()
}

/// Lets stepped time pass.
async fn a_moment() {
    let moment = std::time::Duration::from_micros(1);
    let never = std::future::pending::<()>();
    tokio::time::timeout(moment, never).await.unwrap_err();
}
