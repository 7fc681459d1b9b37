//! Watching keys, the same way for every store.
//!
//! Stores differ in what they can tell of changes, and all of them can lose
//! some. So a store only gives [`Hints`], and one task turns them into what
//! the watcher sees: first everything that is there, then changes, and after
//! every doubt everything that differs from what was seen before.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::store::{Change, Entry, Key, Prefix, Revision, StoreError};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::KeyValue;
use super::backoff::Backoff;

/// Delays between two tries to list what is there.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(2);

/// What a watcher sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A key has another value, or none any more. Of several changes of one
    /// key, only the last may be seen.
    Changed(Change),
    /// Everything that was there has been seen. Comes after the first listing,
    /// and after each that a lost connection made necessary.
    Current,
}

/// What a store can tell of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// This change happened.
    Change(Change),
    /// Something happened to this key.
    Touched(Key),
    /// Changes may have been missed.
    Missed,
}

/// A store's source of hints, which listens from the time that it was made.
#[async_trait]
pub trait Hints: Send {
    /// Waits for the next one, through whatever reconnecting is needed.
    async fn next(&mut self) -> Hint;
}

/// A watch over the keys below a prefix. Dropping it ends it.
///
/// What waits to be read is bounded by the number of keys: a slow reader sees
/// fewer steps, never an older end.
pub struct Watch {
    /// The connection on which the last change was read.
    connection: Option<u64>,
    waiting: Arc<Waiting>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Starts a watch: lists what is below `prefix`, then follows `hints`,
    /// which must have been listening before.
    pub fn start(store: Arc<dyn KeyValue>, prefix: Prefix, hints: Box<dyn Hints>) -> Self {
        let waiting = Arc::new(Waiting::default());
        let follower = Follower {
            store,
            prefix,
            hints,
            seen: BTreeMap::new(),
            connection: None,
            waiting: Arc::clone(&waiting),
        };
        Self {
            connection: None,
            waiting,
            task: tokio::spawn(follower.run()),
        }
    }

    /// Waits for the next notice. An error says that the store could not be
    /// listed; the watch goes on trying. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Notice, StoreError> {
        loop {
            let woken = self.waiting.woken.notified();
            if let Some((next, connection)) = self.waiting.take() {
                self.connection = connection;
                return next;
            }
            woken.await;
        }
    }

    /// The number of the [connection](super::Store::connects) on which the last
    /// change was read; none if that changed while it was.
    pub fn connection(&self) -> Option<u64> {
        self.connection
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// What the watcher has not read yet: per key the last change only.
#[derive(Default)]
struct Waiting {
    state: Mutex<WaitingState>,
    woken: Notify,
}

#[derive(Default)]
struct WaitingState {
    changes: BTreeMap<Key, (Change, Option<u64>)>,
    current: bool,
    failed: Option<StoreError>,
}

impl Waiting {
    /// What is next, and the connection that it was read on.
    fn take(&self) -> Option<(Result<Notice, StoreError>, Option<u64>)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, (change, connection))) = state.changes.pop_first() {
            return Some((Ok(Notice::Changed(change)), connection));
        }
        if std::mem::take(&mut state.current) {
            return Some((Ok(Notice::Current), None));
        }
        state.failed.take().map(|error| (Err(error), None))
    }

    fn put(&self, edit: impl FnOnce(&mut WaitingState)) {
        edit(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.woken.notify_one();
    }
}

/// The task behind a watch.
struct Follower {
    store: Arc<dyn KeyValue>,
    prefix: Prefix,
    hints: Box<dyn Hints>,
    seen: BTreeMap<Key, Revision>,
    /// The connection that hints come from: after a new one, something was
    /// missed, and all is listed on it.
    connection: Option<u64>,
    waiting: Arc<Waiting>,
}

impl Follower {
    async fn run(mut self) {
        self.list_all().await;
        loop {
            match self.hints.next().await {
                Hint::Change(change) => self.follow(change),
                Hint::Touched(key) => self.look_at(&key).await,
                Hint::Missed => self.list_all().await,
            }
        }
    }

    /// A hint may be old: only what is newer than what was seen counts.
    fn follow(&mut self, change: Change) {
        if !self.prefix.holds(change.key()) {
            return;
        }
        let newer = |seen: &Revision| change.revision() > *seen;
        match (self.seen.entry(change.key().clone()), &change) {
            (Slot::Occupied(seen), _) if !newer(seen.get()) => return,
            (Slot::Occupied(mut seen), Change::Put(entry)) => *seen.get_mut() = entry.revision,
            (Slot::Occupied(seen), Change::Deleted(..)) => {
                seen.remove();
            }
            (Slot::Vacant(slot), Change::Put(entry)) => {
                slot.insert(entry.revision);
            }
            (Slot::Vacant(_), Change::Deleted(..)) => return,
        }
        self.show(change);
    }

    async fn look_at(&mut self, key: &Key) {
        if !self.prefix.holds(key) {
            return;
        }
        let connects = self.store.connects();
        let found = self.store.get(key).await;
        if self.connection != Some(connects) || self.store.connects() != connects {
            return self.list_all().await;
        }
        match found {
            Ok(Some(entry)) => self.follow(Change::Put(entry)),
            Ok(None) => self.forget(key),
            Err(_error) => self.list_all().await,
        }
    }

    /// Everything that differs from what was seen. A listing is believed also
    /// where revisions went back: then the store has forgotten something.
    async fn list_all(&mut self) {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
        let entries = loop {
            let connects = self.store.connects();
            match self.store.list(&self.prefix).await {
                Ok(entries) => {
                    self.connection = (self.store.connects() == connects).then_some(connects);
                    break entries;
                }
                Err(error) => self.waiting.put(|state| state.failed = Some(error)),
            }
            tokio::time::sleep(backoff.delay()).await;
        };
        let found: BTreeMap<&Key, &Entry> =
            entries.iter().map(|entry| (&entry.key, entry)).collect();
        let gone = self.seen.keys().filter(|key| !found.contains_key(key));
        for key in gone.cloned().collect::<Vec<_>>() {
            self.forget(&key);
        }
        for entry in entries {
            let before = self.seen.insert(entry.key.clone(), entry.revision);
            if before != Some(entry.revision) {
                self.show(Change::Put(entry));
            }
        }
        self.waiting.put(|state| {
            state.current = true;
            state.failed = None;
        });
    }

    /// A key that was seen is not there any more.
    fn forget(&mut self, key: &Key) {
        if let Some(revision) = self.seen.remove(key) {
            self.show(Change::Deleted(key.clone(), revision));
        }
    }

    fn show(&self, change: Change) {
        let connection = self.connection;
        self.waiting.put(|state| {
            state
                .changes
                .insert(change.key().clone(), (change, connection));
        });
    }
}
