//! The driver and the store: operations, watches, and which life it is in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{Event, Operation, OperationId, Reply, Watched};
use divvy_core::store::{Key, StoreError, StoreErrorKind};
use tokio::time::{sleep, timeout};

use super::{Driver, Input};
use crate::manager::error::ManagerError;
use crate::manager::operations::carry_out;
use crate::manager::retry::Tries;
use crate::manager::watcher::{Subscribing, follow};
use crate::store::clock::boottime;

/// After something unfit, so long until the life of the store is asked for
/// again for that reason.
const UNFIT_PAUSE: Duration = Duration::from_secs(1);

/// Why a store refuses is told again after this, for as long as it does.
const REFUSAL_TOLD_EVERY: Duration = Duration::from_secs(10);

impl Driver {
    pub(super) fn operate(&mut self, id: OperationId, operation: Operation, limit: Duration) {
        if let Operation::CompareAndSet { key, .. } = &operation {
            let own = self.parts.member.worker_id().and_then(worker_key);
            if own.as_ref() == Some(key) {
                self.heartbeats.push(id);
            }
        }
        let (store, driver) = (Arc::clone(&self.parts.store), self.parts.driver.clone());
        let connects = store.connects();
        let may_send = self.parts.member.may_send(connects, &operation);
        self.tasks.spawn(async move {
            // A new connection may have been made since.
            let is_same = store.connects() == connects;
            let (reply, error) = if may_send && is_same {
                carry_out(&*store, operation, limit).await
            } else {
                let why = "a write waits until the life of the store is known";
                let error = StoreError::unavailable(why);
                (Reply::Failed(error.kind()), Some(error))
            };
            let connection = (store.connects() == connects).then_some(connects);
            let answered = Input::Answered(id, reply, error, connection);
            let _gone = driver.send(answered).await;
        });
    }

    pub(super) fn answered(
        &mut self,
        id: OperationId,
        reply: Reply,
        error: Option<StoreError>,
        connection: Option<u64>,
    ) {
        let at = self.heartbeats.iter().position(|known| *known == id);
        if let Some(at) = at {
            self.heartbeats.swap_remove(at);
        }
        if at.is_some() && matches!(reply, Reply::Failed(_)) {
            let failures = &self.parts.status.metrics.heartbeat_failures;
            failures.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(error) = error {
            self.trouble(error);
        }
        self.hear(connection, Event::Reply(id, reply));
    }

    pub(super) fn trouble(&mut self, error: StoreError) {
        tracing::debug!(%error, "the store");
        let (now, kind) = (boottime(), error.kind());
        if matches!(kind, StoreErrorKind::Unfit | StoreErrorKind::Invalid) {
            let text = error.to_string();
            let told = self.refusal.as_ref();
            if told.is_none_or(|(told, due)| *told != text || now >= *due) {
                self.refusal = Some((text, now + REFUSAL_TOLD_EVERY));
                self.problem(ManagerError::Store(error.clone()));
            }
        }
        if kind == StoreErrorKind::Unfit {
            // It may be another life of it. What is read again then may be unfit,
            // too: that must not go round without a pause.
            if now >= self.unfit_due {
                self.unfit_due = now + UNFIT_PAUSE;
                self.ask_life();
            }
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
            let settings = &self.parts.settings;
            let subscribing = Subscribing {
                watched: key.clone(),
                limit: settings.operation_timeout,
                tries: Tries::new(self.parts.retry, settings.heartbeat_ttl),
            };
            let task = self.tasks.spawn(follow(store, subscribing, driver));
            self.watches.push((key.clone(), task));
        }
    }

    pub(super) fn connection_changed(&mut self) {
        let connection = self.connection.borrow_and_update().clone();
        let was_up = std::mem::replace(&mut self.is_connected, connection.up);
        if connection.up {
            self.ask_life();
        } else if was_up {
            let why = connection.lost_by.unwrap_or_default();
            self.problem(ManagerError::ConnectionLost(why.into()));
        }
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
        // Nothing goes on before it is known.
        let mut tries = Tries::new(self.parts.retry, self.parts.settings.heartbeat_interval);
        let task = self.tasks.spawn(async move {
            loop {
                let connects = store.connects();
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
                sleep(tries.failed()).await;
            }
        });
        self.life_asked = Some(task);
        self.life_due = Moment::from_origin(Duration::MAX);
    }
}

fn worker_key(id: &str) -> Option<Key> {
    Key::new(["w", id]).ok()
}
