//! How each partition does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use divvy_core::Partition;
use divvy_core::store::Token;

/// How a partition does that this worker owns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionHealth {
    /// Which.
    pub partition: Partition,
    /// The token of its grant.
    pub token: Token,
    /// Whether messages are being asked for: its consumer was found or made,
    /// and the server answers.
    pub is_consuming: bool,
    /// Messages that wait in the stream, as far as was heard last: with each
    /// message, and every `reconcile_interval`.
    pub lag: u64,
    /// Messages that are being handled, or wait for their turn.
    pub in_flight: u64,
    /// Messages that were acknowledged.
    pub handled: u64,
    /// Messages that came, and had been given out before.
    pub redelivered: u64,
    /// Times that a handler failed or panicked.
    pub failed: u64,
    /// Messages that went to the dead letters.
    pub dead_lettered: u64,
    /// Times that its consumer was made, set back or replaced.
    pub repaired: u64,
    /// What went wrong last, since the partition was assigned.
    pub last_error: Option<String>,
}

/// What is counted of one partition, while it is owned.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    pub(super) is_consuming: AtomicBool,
    pub(super) lag: AtomicU64,
    pub(super) in_flight: AtomicU64,
    pub(super) handled: AtomicU64,
    pub(super) redelivered: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) dead_lettered: AtomicU64,
    pub(super) repaired: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Gauges {
    pub(super) fn wrong(&self, what: String) {
        *self.error() = Some(what);
    }

    pub(super) fn health(&self, partition: &Partition, token: Token) -> PartitionHealth {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        PartitionHealth {
            partition: partition.clone(),
            token,
            is_consuming: self.is_consuming.load(Ordering::Relaxed),
            lag: read(&self.lag),
            in_flight: read(&self.in_flight),
            handled: read(&self.handled),
            redelivered: read(&self.redelivered),
            failed: read(&self.failed),
            dead_lettered: read(&self.dead_lettered),
            repaired: read(&self.repaired),
            last_error: self.error().clone(),
        }
    }

    fn error(&self) -> MutexGuard<'_, Option<String>> {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
