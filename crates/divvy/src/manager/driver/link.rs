//! The driver and the store: operations, watches, and which life it is in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{Event, MoveEntry, Operation, OperationId, Reply, Watched};
use divvy_core::store::{Key, StoreError, StoreErrorKind};
use tokio::time::{sleep, timeout};

use super::{Driver, Input, Write};
use crate::manager::error::ManagerError;
use crate::manager::operations::carry_out;
use crate::manager::watcher::follow;
use crate::store::backoff::Backoff;

/// Delays between two tries to learn which life the store is in.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(2);

impl Driver {
    pub(super) fn operate(&mut self, id: OperationId, operation: Operation, limit: Duration) {
        if let Operation::CompareAndSet { key, value, .. } = &operation {
            let own = self.parts.member.worker_id().and_then(worker_key);
            if own.as_ref() == Some(key) {
                self.writes.push((id, Write::Heartbeat));
            } else if key.as_str() == "moves" {
                self.writes.push((id, Write::Moves(Arc::clone(value))));
            }
        }
        let (store, driver) = (Arc::clone(&self.parts.store), self.parts.driver.clone());
        self.tasks.spawn(async move {
            let (reply, error) = carry_out(&*store, operation, limit).await;
            let _gone = driver.send(Input::Answered(id, reply, error)).await;
        });
    }

    pub(super) fn answered(&mut self, id: OperationId, reply: Reply, error: Option<StoreError>) {
        let at = self.writes.iter().position(|(known, _)| *known == id);
        let write = at.map(|at| self.writes.swap_remove(at).1);
        match (write, &reply) {
            (Some(Write::Heartbeat), Reply::Failed(_)) => {
                let failures = &self.parts.status.metrics.heartbeat_failures;
                failures.fetch_add(1, Ordering::Relaxed);
            }
            (Some(Write::Moves(log)), Reply::Written(outcome)) if !outcome.is_conflict() => {
                self.count_moves(&log);
            }
            _ => {}
        }
        if let Some(error) = error {
            self.trouble(error);
        }
        self.tell(Event::Reply(id, reply));
    }

    fn count_moves(&mut self, log: &[u8]) {
        let Ok(entries) = MoveEntry::decode_log(log) else {
            return;
        };
        let name =
            |entry: &MoveEntry| format!("{} {} {}", entry.version, entry.partition, entry.to);
        let told = self.moves_told.as_ref();
        let known = told.and_then(|told| entries.iter().rposition(|entry| name(entry) == *told));
        for entry in &entries[known.map_or(0, |at| at + 1)..] {
            self.parts.status.metrics.moved(&entry.cause);
        }
        self.moves_told = entries.last().map(name).or_else(|| self.moves_told.take());
    }

    pub(super) fn trouble(&mut self, error: StoreError) {
        tracing::debug!(%error, "the store");
        let is_news = self
            .last_trouble
            .as_ref()
            .is_none_or(|last| last.kind() != error.kind());
        if error.kind() == StoreErrorKind::Unfit {
            if is_news {
                self.problem(ManagerError::Store(error.clone()));
            }
            // It may be another life of it.
            self.ask_life();
        }
        self.last_trouble = Some(error);
    }

    pub(super) fn watch(&mut self, keys: &[Watched]) {
        self.watches.retain(|(watched, task)| {
            let is_wanted = keys.contains(watched);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        for key in keys {
            if self.watches.iter().any(|(watched, _)| watched == key) {
                continue;
            }
            let (store, driver) = (Arc::clone(&self.parts.store), self.parts.driver.clone());
            let task = self.tasks.spawn(follow(store, key.clone(), driver));
            self.watches.push((key.clone(), task));
        }
    }

    pub(super) fn connection_changed(&mut self) {
        let connection = self.connection.borrow_and_update().clone();
        if connection.up {
            self.ask_life();
            return;
        }
        let why = connection.lost_by.unwrap_or_default();
        self.problem(ManagerError::ConnectionLost(why.into()));
    }

    /// Asks which life the store is in, until it answers.
    pub(super) fn ask_life(&mut self) {
        let is_asked = self
            .life_asked
            .as_ref()
            .is_some_and(|task| !task.is_finished());
        if is_asked {
            return;
        }
        let limit = self.parts.settings.operation_timeout;
        let (store, driver) = (Arc::clone(&self.parts.store), self.parts.driver.clone());
        let connection = self.connection.clone();
        let task = self.tasks.spawn(async move {
            let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
            loop {
                let connects = connection.borrow().connects;
                let input = match timeout(limit, store.incarnation()).await {
                    Ok(Ok(incarnation)) => Input::Life(incarnation, connects),
                    Ok(Err(error)) => Input::Trouble(error),
                    Err(_elapsed) => Input::Trouble(StoreError::unavailable(format_args!(
                        "no answer within {limit:?}"
                    ))),
                };
                let is_known = matches!(input, Input::Life(..));
                if driver.send(input).await.is_err() || is_known {
                    return;
                }
                sleep(backoff.delay()).await;
            }
        });
        self.life_asked = Some(task);
        self.life_due = Moment::from_origin(Duration::MAX);
    }
}

fn worker_key(id: &str) -> Option<Key> {
    Key::new(["w", id]).ok()
}
