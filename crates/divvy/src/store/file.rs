//! The store in a file, for all processes of one machine.
//!
//! `file:./divvy.db` is an SQLite database, and needs no server. Members of any
//! number of processes share it; none of them has to be the first or the last,
//! and each may be killed at any time.
//!
//! What is beside the database belongs to it: `-wal` is SQLite's log and `-shm`
//! the memory that its processes share, `-next`, `-turn` and `-copy` are the
//! locks by which they queue. To remove a store, stop its members and remove
//! all of them.
//!
//! - A write waits for its turn, in an order that starves nobody, and is
//!   committed when it is acknowledged. A process that is *stopped* (SIGSTOP, a
//!   debugger) in the middle of its turn holds up all others until it goes on
//!   or ends: their operations then fail with [`StoreErrorKind::Unavailable`]
//!   and name it.
//! - Leases expire by the machine's clock since its start, which nobody can
//!   set and which goes on while the machine sleeps.
//! - The last commits may be lost when the *machine* crashes, and only then.
//!   Its next start is another incarnation. So is a file that was put in the
//!   place of another, or made anew: members notice, and with
//!   [`StoreSettings::restart_quarantine`] nobody gets a lease before those of
//!   the other file have run out.
//! - The file must be on a local disk.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use divvy::store::{Expected, Key, KeyValue, StoreSettings, file::FileStore};
//!
//! let directory = std::env::temp_dir().join(format!("divvy-doc-{}", std::process::id()));
//! std::fs::create_dir_all(&directory).unwrap();
//! let url = format!("file:{}/divvy.db", directory.display()).parse()?;
//! let one = FileStore::open(&url, &StoreSettings::default()).await?;
//! let two = FileStore::open(&url, &StoreSettings::default()).await?;
//! let key = Key::new(["leader"])?;
//! one.compare_and_set(&key, Expected::Absent, b"alpha").await?.done().unwrap();
//! assert_eq!(*two.get(&key).await?.unwrap().value, *b"alpha");
//! # drop((one, two));
//! # std::fs::remove_dir_all(&directory).unwrap();
//! # Ok::<(), divvy::store::StoreError>(())
//! # }).unwrap();
//! ```

mod copier;
mod database;
mod entries;
mod erasing;
mod examination;
mod failure;
mod leases;
mod log;
mod notes;
mod pairing;
mod place;
mod quarantine;
mod queue;
mod schema;
mod tenures;
mod time;
mod turn;
mod watcher;

pub(crate) use examination::examine;

use std::io::PipeWriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::Invalid;
use divvy_core::store::{Entry, Expected, Incarnation, Key, Outcome, Prefix, Revision, StoreError};
use rusqlite::Connection as Sqlite;
use tokio::sync::{broadcast, oneshot, watch};
use tokio::time::{Instant, timeout};

use self::copier::Copier;
use self::database::Database;
use self::log::Writing;
use self::place::{Missing, Place, TURN_ENDING};
use self::queue::Queue;
use self::watcher::Watcher;
use super::bounds::{VALUE_BYTES_MAX, check_listed, check_value};
use super::connection::{Connection, ConnectionReport};
use super::notices::NoticeBoard;
use super::settings::StoreSettings;
use super::url::{StoreKind, StoreUrl};
use super::watch::{Hint, Hints, Watch};
use super::{KeyValue, Store};

#[cfg(doc)]
use super::StoreErrorKind;

/// Changes that wait for a slow watch; beyond, it lists everything.
const CHANGES_WAITING_MAX: usize = 1024;

/// A store in a file. Clones share its threads, which end with the last one.
#[derive(Debug, Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: Arc<Place>,
    cluster: String,
    operation_timeout: Duration,
    quarantine: bool,
    reads: Queue,
    writes: Queue,
    hints: broadcast::Sender<Hint>,
    notices: NoticeBoard,
    connection: ConnectionReport,
    /// Counts how often the database was not at its place.
    missed: Arc<AtomicU64>,
    /// Dropping it ends the thread that watches.
    _watching: PipeWriter,
}

impl FileStore {
    /// Opens the store at a `file:` address; a file that is missing is made,
    /// in a directory that is there.
    pub async fn open(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, StoreError> {
        settings.check()?;
        if url.kind() != StoreKind::File {
            return Err(Invalid::new("store", url, "must be file:PATH").into());
        }
        let place = Arc::new(Place::find(&url.path())?);
        if !settings.create && place.identity().is_none() {
            return Err(StoreError::unfit(format_args!(
                "store '{place}' is not there: nobody has made it"
            )));
        }
        let opening = Self::start(Arc::clone(&place), settings);
        match timeout(settings.connect_timeout, opening).await {
            Ok(opened) => opened,
            Err(_elapsed) => Err(too_late(&place, settings.connect_timeout)),
        }
    }

    async fn start(place: Arc<Place>, settings: &StoreSettings) -> Result<Self, StoreError> {
        let busy_max = settings.operation_timeout;
        let missed = Arc::<AtomicU64>::default();
        let (reader, writer) = open_both(&place, busy_max, &missed).await?;
        let copier = Copier::start(Arc::clone(&place), busy_max)?;
        let reads = Queue::start("divvy-read", Arc::clone(&place), reader, |_| {})?;
        let writes = Queue::start("divvy-write", Arc::clone(&place), writer, move |database| {
            copier.consider(database);
        })?;
        let hints = broadcast::Sender::new(CHANGES_WAITING_MAX);
        let (notices, connection) = (NoticeBoard::default(), ConnectionReport::connected());
        let watcher = Watcher {
            place: Arc::clone(&place),
            cluster: settings.cluster.clone(),
            busy_max,
            interval: settings.ping_interval,
            retry_longest: settings.reconnect_delay_max,
            hints: hints.clone(),
            notices: notices.clone(),
            connection: connection.clone(),
            missed: Arc::clone(&missed),
        };
        let (listening, listens) = oneshot::channel();
        let watching = watcher.start(listening)?;
        listens.await.map_err(|_error| thread_ended())??;
        let shared = Shared {
            place,
            cluster: settings.cluster.clone(),
            operation_timeout: settings.operation_timeout,
            quarantine: settings.restart_quarantine,
            reads,
            writes,
            hints,
            notices,
            connection,
            missed,
            _watching: watching,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// When an operation that begins now must have ended.
    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.operation_timeout
    }

    fn cluster(&self) -> String {
        self.shared.cluster.clone()
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sqlite) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.reads.read(self.deadline(), work).await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Writing<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.shared.writes.write(self.deadline(), work).await
    }
}

#[async_trait]
impl Store for FileStore {
    fn describe(&self) -> String {
        format!("{} (SQLite {})", self.shared.place, rusqlite::version())
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT id FROM life")?
                .query_row([], |row| Ok(Incarnation::new(row.get_ref(0)?.as_str()?)))
        })
        .await
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.connection.subscribe()
    }

    fn connects(&self) -> u64 {
        // A database that takes the place of another is noticed in the middle
        // of an operation, before that is carried out.
        let missed = self.shared.missed.load(Ordering::Acquire);
        self.shared.connection.subscribe().borrow().connects + missed
    }
}

#[async_trait]
impl KeyValue for FileStore {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        let (cluster, key) = (self.cluster(), key.clone());
        self.read(move |connection| entries::get(connection, &cluster, &key))
            .await
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        check_value(value, VALUE_BYTES_MAX)?;
        let (cluster, key, value) = (self.cluster(), key.clone(), value.to_vec());
        self.write(move |writing| {
            entries::compare_and_set(writing, &cluster, &key, expected, &value)
        })
        .await
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let (cluster, key) = (self.cluster(), key.clone());
        self.write(move |writing| entries::delete(writing, &cluster, &key, revision))
            .await
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        if let Some(key) = prefix.single() {
            return Ok(self.get(key).await?.into_iter().collect());
        }
        let (cluster, prefix) = (self.cluster(), prefix.clone());
        let entries = self
            .read(move |connection| entries::list(connection, &cluster, &prefix))
            .await?;
        check_listed(entries.len())?;
        Ok(entries)
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        let hints = Box::new(FileHints(self.shared.hints.subscribe()));
        Ok(Watch::start(Arc::new(self.clone()), prefix.clone(), hints))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }
}

struct FileHints(broadcast::Receiver<Hint>);

#[async_trait]
impl Hints for FileHints {
    async fn next(&mut self) -> Hint {
        match self.0.recv().await {
            Ok(hint) => hint,
            Err(broadcast::error::RecvError::Lagged(_)) => Hint::Missed,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Opens two connections on a thread of their own, because that may block for
/// longer than anybody wants to wait.
async fn open_both(
    place: &Arc<Place>,
    busy_max: Duration,
    missed: &Arc<AtomicU64>,
) -> Result<(Database, Database), StoreError> {
    let (reply, answer) = oneshot::channel();
    let (at, missed) = (Arc::clone(place), Arc::clone(missed));
    queue::spawn(place, "divvy-open", move || {
        let open = || {
            let opened = Database::open(Arc::clone(&at), busy_max, Missing::Make)?;
            Ok(opened.reporting(Arc::clone(&missed)))
        };
        let both = open().and_then(|reader| Ok((reader, open()?)));
        // Opening may have been given up.
        let _unheard = reply.send(both);
    })?;
    answer.await.map_err(|_error| thread_ended())?
}

fn too_late(place: &Place, limit: Duration) -> StoreError {
    match place.lock_holder(TURN_ENDING) {
        Some(process) => StoreError::unavailable(format_args!(
            "store '{place}' could not be opened within {limit:?}; it is process {process}'s \
             turn: if that is stopped, resume or end it"
        )),
        None => StoreError::unavailable(format_args!(
            "store '{place}' could not be opened within {limit:?}"
        )),
    }
}

fn thread_ended() -> StoreError {
    StoreError::unavailable("the store's thread has ended")
}
