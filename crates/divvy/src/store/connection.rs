//! Whether a store is reached.

#[cfg(any(feature = "nats", feature = "redis"))]
use std::{fmt, time::Duration};

use tokio::sync::watch;

/// The connection to a store, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// Whether the store is reached.
    pub up: bool,
    /// How often it has been reached anew, the first time included. When it
    /// has grown, changes may have been missed.
    pub connects: u64,
    /// Why it was last lost, in words without secrets.
    pub lost_by: Option<String>,
}

/// The writing end: what a store says of its connection. Clones are the same.
#[derive(Debug, Clone)]
pub struct ConnectionReport {
    sender: watch::Sender<Connection>,
}

impl ConnectionReport {
    /// A connection that has just been made.
    pub fn connected() -> Self {
        let first = Connection {
            up: true,
            connects: 1,
            lost_by: None,
        };
        Self {
            sender: watch::Sender::new(first),
        }
    }

    /// What [`Store::connection`](super::Store::connection) gives.
    pub fn subscribe(&self) -> watch::Receiver<Connection> {
        self.sender.subscribe()
    }

    /// The store was reached again.
    pub fn regained(&self) {
        self.sender.send_modify(|connection| {
            connection.up = true;
            connection.connects += 1;
        });
        tracing::info!("store reached again");
    }

    /// The store is not needed any more, and its connection was ended by us.
    pub fn closed(&self) {
        tracing::debug!("store closed");
        self.sender.send_modify(|connection| {
            connection.up = false;
            connection.lost_by = Some("closed".to_owned());
        });
    }

    /// The store is not reached any more; `reason` holds no secret.
    pub fn lost(&self, reason: impl Into<String>) {
        let reason = reason.into();
        if self.sender.borrow().up {
            // Whoever uses the store tells people what that means.
            tracing::debug!("store lost: {reason}");
        }
        self.sender.send_if_modified(|connection| {
            let news = connection.up || connection.lost_by.as_ref() != Some(&reason);
            connection.up = false;
            connection.lost_by = Some(reason.clone());
            news
        });
    }
}

/// Tells whoever waits for a store why it is not there yet, under a target of its
/// own.
#[cfg(any(feature = "nats", feature = "redis"))]
pub(super) fn tell_waiting(why: impl fmt::Display, span: Duration) {
    tracing::info!(target: "divvy::store::opening", "{why}; trying again for up to {span:?}");
}
