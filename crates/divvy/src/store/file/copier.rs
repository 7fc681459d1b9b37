//! Copying the log into the database.
//!
//! The log must be copied before it can start over, and copying waits for the
//! disk. So a thread of its own does it, beside the writers, in one process at
//! a time. While others write without pause it never catches up; once the log
//! is long, it does the rest while nobody writes. And should the log outgrow
//! even that, whoever makes it longer has to wait for the copy.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use divvy_core::store::StoreError;

use super::database::{Database, take_log_pages};
use super::failure::system_failure;
use super::place::{COPY_ENDING, Missing, Place};
use super::queue;

/// Pages in the log from which on it is copied: 4 MB.
const COPY_FROM_PAGES: i32 = 1000;
/// Pages in the log from which on the rest is copied while nobody writes.
const LONG_PAGES: i64 = 4096;
/// Pages in the log from which on writers wait for the copy: 32 MB.
const WAIT_FROM_PAGES: i32 = 8192;

/// The way to the thread that copies. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Copier {
    wake: SyncSender<()>,
}

impl Copier {
    pub(super) fn start(place: Arc<Place>, busy_max: Duration) -> Result<Self, StoreError> {
        let (wake, woken) = sync_channel(1);
        let at = Arc::clone(&place);
        queue::spawn(&place, "divvy-copy", move || run(&at, busy_max, &woken))?;
        Ok(Self { wake })
    }

    /// Has the log copied if this thread's last commit left it long.
    pub(super) fn consider(&self, database: &mut Database) {
        let pages = take_log_pages();
        if pages < COPY_FROM_PAGES {
            return;
        }
        // We have just written, so the database is there, and its lock may be
        // made.
        let sole = database.place().open_beside(COPY_ENDING, Missing::Make);
        // One that is awake already will see it.
        let _awake = self.wake.try_send(());
        if pages >= WAIT_FROM_PAGES {
            report(sole.and_then(|sole| {
                let locked = sole.lock();
                locked.map_err(|error| system_failure(database.place(), "queue for it", error))?;
                copy(database)
            }));
        }
    }
}

fn run(place: &Arc<Place>, busy_max: Duration, woken: &Receiver<()>) {
    let mut kept = None;
    while woken.recv().is_ok() {
        let copied = match kept.take() {
            Some(database) => Ok(database),
            None => Database::open(Arc::clone(place), busy_max, Missing::Refuse),
        }
        .and_then(|mut database| {
            let sole = place.open_beside(COPY_ENDING, Missing::Refuse)?;
            // Otherwise another process is at it.
            if sole.try_lock().is_ok() {
                copy(&mut database)?;
            }
            Ok(database)
        });
        kept = report(copied);
    }
}

/// Copies the log, by the only one who does.
fn copy(database: &mut Database) -> Result<(), StoreError> {
    let (pages, copied) = database.copy_log()?;
    if pages > LONG_PAGES && copied < pages {
        database.copy_log_in_turn()?;
    }
    Ok(())
}

/// Not copying costs only space, so nobody else has to know.
fn report<T>(copied: Result<T, StoreError>) -> Option<T> {
    copied
        .inspect_err(|error| tracing::debug!(%error, "cannot copy the log into the database"))
        .ok()
}
