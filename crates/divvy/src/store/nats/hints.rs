//! A watch's source of hints: a consumer that is made anew after every doubt.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::store::{Change, Entry, Prefix, StoreError};
use tokio::sync::watch;

use super::consumer::{Consumer, Delivered};
use super::sequence::{deletion_revision, value_revision};
use super::shared::Shared;
use crate::store::backoff::Backoff;
use crate::store::connection::Connection;
use crate::store::watch::{Hint, Hints};

const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(2);

pub(super) struct NatsHints {
    shared: Arc<Shared>,
    prefix: Prefix,
    consumer: Option<Consumer>,
    connection: watch::Receiver<Connection>,
    /// The connection that the consumer was made on.
    connects: u64,
    backoff: Backoff,
}

impl NatsHints {
    /// Listens from now on.
    pub(super) async fn start(shared: Arc<Shared>, prefix: Prefix) -> Result<Self, StoreError> {
        let connection = shared.link.events().report.subscribe();
        let mut hints = Self {
            shared,
            prefix,
            consumer: None,
            connection,
            connects: 0,
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
        };
        hints.listen().await?;
        Ok(hints)
    }

    async fn listen(&mut self) -> Result<(), StoreError> {
        self.connects = self.connection.borrow_and_update().connects;
        self.consumer = Some(self.shared.follow(&self.prefix).await?);
        self.backoff.reset();
        Ok(())
    }

    /// Waits before the next try, but not when the server is back.
    async fn rest(&mut self) {
        let delay = self.backoff.delay();
        let back = self
            .connection
            .wait_for(|now| now.up && now.connects != self.connects);
        // Whether it is back or the time is over, it is time to try.
        let _ended = tokio::time::timeout(delay, back).await;
    }

    fn hint(&self, delivered: &Delivered) -> Option<Hint> {
        let key = self.shared.bucket.key(&delivered.message.subject)?;
        let change = if delivered.is_marker() {
            Change::Deleted(key, deletion_revision(delivered.sequence)?)
        } else {
            Change::Put(Entry {
                key,
                value: delivered.message.payload.as_ref().into(),
                revision: value_revision(delivered.sequence)?,
            })
        };
        Some(Hint::Change(change))
    }
}

#[async_trait]
impl Hints for NatsHints {
    async fn next(&mut self) -> Hint {
        loop {
            let Some(consumer) = &mut self.consumer else {
                match self.listen().await {
                    Ok(()) => return Hint::Missed,
                    Err(error) => {
                        tracing::debug!(%error, "cannot watch yet");
                        self.rest().await;
                    }
                }
                continue;
            };
            let (shared, connects) = (Arc::clone(&self.shared), self.connects);
            let next = consumer.follow(&shared.link, &shared.bucket, shared.heartbeat);
            let moved = async {
                let connection = self.connection.wait_for(|now| now.connects != connects);
                connection.await.is_ok()
            };
            tokio::select! {
                // A consumer does not always outlive a connection, and what it
                // sent meanwhile is lost.
                _ = moved => self.consumer = None,
                next = next => match next {
                    Ok(delivered) => {
                        if let Some(hint) = self.hint(&delivered) {
                            return hint;
                        }
                    }
                    Err(fault) => {
                        tracing::debug!(%fault, "a watch is made anew");
                        self.consumer = None;
                    }
                },
            }
        }
    }
}
