//! The threads that do the work, and the queues in front of them.
//!
//! SQLite blocks, and so does waiting for a turn, so neither happens on the
//! runtime's threads. A caller waits no longer than it may; what it then knows
//! of its write depends on whether that had begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use divvy_core::store::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::database::Database;
use super::log::Writing;
use super::place::{COPY_ENDING, Place, TURN_ENDING};

/// Operations that wait for a thread; further ones wait for room.
const WAITING_MAX: usize = 256;

type Job = Box<dyn FnOnce(&mut Database) + Send>;

/// A thread with a database of its own, and the operations that wait for it.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    place: Arc<Place>,
    jobs: mpsc::Sender<Job>,
}

impl Queue {
    /// Starts a thread. It ends when the last clone of the queue is dropped;
    /// `after` is called after each job.
    pub(super) fn start(
        name: &str,
        place: Arc<Place>,
        mut database: Database,
        mut after: impl FnMut(&mut Database) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (jobs, mut waiting) = mpsc::channel::<Job>(WAITING_MAX);
        let run = move || {
            while let Some(job) = waiting.blocking_recv() {
                job(&mut database);
                after(&mut database);
            }
        };
        spawn(&place, name, run)?;
        Ok(Self { place, jobs })
    }

    /// Reads from one state of the database.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let job = move |database: &mut Database, attempt: &Attempt| {
            // One that nobody waits for any more is not worth the time.
            match attempt.start() {
                true => database.read(work),
                false => Err(StoreError::unavailable("nobody waits for this read")),
            }
        };
        self.run(deadline, job, StoreErrorKind::Unavailable).await
    }

    /// Writes in one transaction.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Writing<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let job = move |database: &mut Database, attempt: &Attempt| {
            database.write(|| attempt.start(), work)
        };
        self.run(deadline, job, StoreErrorKind::Unknown).await
    }

    /// `overtaken` is the kind of error when time runs out in the middle.
    async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut Database, &Attempt) -> Result<T, StoreError> + Send + 'static,
        overtaken: StoreErrorKind,
    ) -> Result<T, StoreError> {
        let attempt = Wanted(Attempt::default());
        let begun = attempt.0.clone();
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |database| {
            // Nobody listens any more if the caller was dropped.
            let _unheard = reply.send(work(database, &begun));
        });
        let done = async {
            // Either fails only if the thread has panicked.
            self.jobs.send(job).await.ok()?;
            answer.await.ok()
        };
        match timeout_at(deadline, done).await {
            Ok(Some(result)) => result,
            Ok(None) => Err(StoreError::new(overtaken, "the store's thread has ended")),
            Err(_elapsed) if attempt.0.cancel() => Err(self.never_had_its_turn()),
            Err(_elapsed) => Err(StoreError::new(
                overtaken,
                format_args!("store '{}' did not finish in time", self.place),
            )),
        }
    }

    fn never_had_its_turn(&self) -> StoreError {
        let place = &self.place;
        let late = format_args!("store '{place}' did not come to this in time");
        if let Some(process) = place.lock_holder(TURN_ENDING) {
            return StoreError::unavailable(format_args!(
                "{late}; it is process {process}'s turn: if that is stopped, resume or end it"
            ));
        }
        // A long log makes writers wait for its copy.
        if let Some(process) = place.lock_holder(COPY_ENDING) {
            return StoreError::unavailable(format_args!(
                "{late}; process {process} copies its log: if that is stopped, resume or end it"
            ));
        }
        StoreError::unavailable(late)
    }
}

/// Starts a thread of a store.
pub(super) fn spawn(
    place: &Place,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<(), StoreError> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|error| {
        StoreError::unavailable(format_args!(
            "store '{place}': cannot start a thread: {error}"
        ))
        .caused_by(error)
    })
}

/// One try of an operation: it either begins or is called off, never both.
#[derive(Debug, Clone, Default)]
struct Attempt(Arc<AtomicU8>);

impl Attempt {
    const WAITING: u8 = 0;
    const BEGUN: u8 = 1;
    const CANCELLED: u8 = 2;

    /// Begins, unless it was called off.
    fn start(&self) -> bool {
        self.leave_waiting(Self::BEGUN)
    }

    /// Calls it off, unless it has begun.
    fn cancel(&self) -> bool {
        self.leave_waiting(Self::CANCELLED)
    }

    fn leave_waiting(&self, state: u8) -> bool {
        let order = Ordering::AcqRel;
        let left = self
            .0
            .compare_exchange(Self::WAITING, state, order, Ordering::Acquire);
        left.is_ok()
    }
}

/// A caller's interest in its attempt, which ends when it is dropped.
#[derive(Debug)]
struct Wanted(Attempt);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
