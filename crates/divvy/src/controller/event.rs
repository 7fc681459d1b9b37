//! What happens in a controller, as it happens: for logs, command lines and
//! tests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use divvy_core::Moment;
use divvy_core::lease::{StopReason, TenureId};
use divvy_core::store::{LeaseKey, Token};
use tokio::sync::mpsc;

use super::status::Status;
use crate::store::clock::boottime;

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerEvent {
    /// When, on the clock that all processes of this machine share.
    pub at: Moment,
    /// What.
    pub kind: ControllerEventKind,
}

/// What happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ControllerEventKind {
    /// The worker has its name, and takes part.
    Joined,
    /// Its session is over; why, in words.
    SessionEnded(Box<str>),
    /// The live workers, after a change.
    Members(Vec<Box<str>>),
    /// The groups that are served, after a change.
    Groups(Vec<(Box<str>, u32)>),
    /// A consumer is started.
    Starting {
        /// Of which partition.
        key: LeaseKey,
        /// In which tenure.
        tenure: TenureId,
        /// With which token.
        token: Token,
        /// Until when it may work, unless its lease is renewed.
        until: Moment,
    },
    /// A consumer was started, or failed to.
    Started {
        /// Of which partition.
        key: LeaseKey,
        /// It failed, and nothing runs.
        failed: bool,
    },
    /// A consumer is stopped.
    Stopping {
        /// Of which partition.
        key: LeaseKey,
        /// Why.
        reason: StopReason,
    },
    /// A consumer has stopped.
    Stopped {
        /// Of which partition.
        key: LeaseKey,
    },
    /// Grants are current until then; nothing ends them for good.
    Deadline {
        /// Of which partitions.
        keys: Vec<LeaseKey>,
        /// Until when.
        until: Option<Moment>,
    },
    /// The store fails, and nothing is taken or given up for a while.
    Backoff,
    /// The store works again.
    Recovered,
    /// The store grants nothing for so long.
    Quarantined(std::time::Duration),
    /// Something failed and will be tried again, or needs a person.
    Problem(Box<str>),
    /// It has ended.
    Ended,
}

/// Tells a listener, if there is one. What it does not take in time is lost.
#[derive(Debug, Clone)]
pub(super) struct Events {
    pub(super) listener: Option<mpsc::Sender<ControllerEvent>>,
    /// Where what is lost is counted.
    pub(super) status: Arc<Status>,
}

impl Events {
    pub(super) fn tell(&self, kind: impl FnOnce() -> ControllerEventKind) {
        if let Some(listener) = &self.listener {
            let event = ControllerEvent {
                at: boottime(),
                kind: kind(),
            };
            if listener.try_send(event).is_err() {
                let lost = &self.status.metrics.events_lost;
                lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
