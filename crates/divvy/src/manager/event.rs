//! What happens in a manager, as it happens: for logs, command lines and
//! tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use divvy_core::leader::{Lifecycle, SessionId, State, Version};
use divvy_core::store::Token;
use divvy_core::{Moment, Partition};
use tokio::sync::mpsc;

use super::error::ManagerError;
use crate::store::clock::boottime;

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManagerEvent {
    /// When, on the clock that all processes of this machine share.
    pub at: Moment,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum EventKind {
    /// The state changed.
    StateChanged {
        /// What it was.
        from: State,
        /// What it is.
        to: State,
    },
    /// A stable id was claimed, for a new session.
    Claimed {
        /// The id.
        worker: Box<str>,
    },
    /// The session is over, and a new id is looked for.
    SessionEnded {
        /// Why.
        why: Box<str>,
    },
    /// Grants are current until then; nothing ends all that were given before.
    Deadline {
        /// The stable id and session, while there is one.
        identity: Option<(Box<str>, SessionId)>,
        /// When.
        until: Option<Moment>,
    },
    /// The lease was about to end, which was told as an error, and is renewed
    /// after all: work goes on.
    LeaseRegained {
        /// How long after the renewal before.
        after: Duration,
    },
    /// The first grants wait for something, which ends by itself.
    Waiting {
        /// What for, and for how long at most.
        why: Box<str>,
    },
    /// A newer assignment is in force.
    Adopted {
        /// In which session.
        session: Option<SessionId>,
        /// Which.
        version: Version,
        /// How far the cluster has come.
        lifecycle: Lifecycle,
    },
    /// The hook `assigned` is called.
    Assigned {
        /// For which partition.
        partition: Partition,
        /// With which token.
        token: Token,
    },
    /// The hook `assigned` has returned, or failed.
    Started {
        /// For which partition.
        partition: Partition,
        /// Whether it failed.
        failed: bool,
    },
    /// The hook `revoked` is called.
    Revoked {
        /// For which partition.
        partition: Partition,
    },
    /// The hook `revoked` has returned: the partition was given back.
    Stopped {
        /// For which partition.
        partition: Partition,
    },
    /// This worker began or ceased to lead.
    LeadershipChanged {
        /// Whether it leads.
        is_leader: bool,
    },
    /// As the leader, it committed an assignment.
    Committed {
        /// Which.
        version: Version,
        /// How many partitions got an owner.
        granted: u32,
        /// How many were asked back.
        revoked: u32,
    },
    /// Something went wrong that the manager survives.
    Error(ManagerError),
    /// Events were lost before this one, because nobody took them in time.
    Lost {
        /// How many.
        count: u64,
    },
    /// The manager has ended.
    Ended,
}

/// Where events go. A listener that is too slow loses some, and never holds up
/// the manager.
#[derive(Debug, Default)]
pub(super) struct Events {
    listener: Option<mpsc::Sender<ManagerEvent>>,
    lost: AtomicU64,
}

impl Events {
    pub(super) fn to(listener: Option<mpsc::Sender<ManagerEvent>>) -> Self {
        Self {
            listener,
            lost: AtomicU64::default(),
        }
    }

    pub(super) fn tell(&self, kind: impl FnOnce() -> EventKind) {
        let Some(listener) = &self.listener else {
            return;
        };
        let at = boottime();
        let count = self.lost.load(Ordering::Relaxed);
        let is_whole = count == 0 || {
            let kind = EventKind::Lost { count };
            let is_told = listener.try_send(ManagerEvent { at, kind }).is_ok();
            if is_told {
                self.lost.store(0, Ordering::Relaxed);
            }
            is_told
        };
        let kind = kind();
        if is_whole && listener.try_send(ManagerEvent { at, kind }).is_ok() {
            return;
        }
        if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("events are lost, because nobody takes them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_listener_is_told_how_many_events_it_lost() {
        let (listener, mut heard) = mpsc::channel(3);
        let events = Events::to(Some(listener));
        let tell = |is_leader| events.tell(|| EventKind::LeadershipChanged { is_leader });
        for _ in 0..5 {
            tell(true);
        }
        let mut taken = Vec::new();
        let mut take = |heard: &mut mpsc::Receiver<ManagerEvent>| {
            while let Ok(event) = heard.try_recv() {
                taken.push(event.kind);
            }
        };
        take(&mut heard);
        for _ in 0..2 {
            tell(false);
        }
        take(&mut heard);
        let lost = taken.iter().map(|kind| match kind {
            EventKind::Lost { count } => *count,
            _ => 0,
        });
        assert_eq!(lost.collect::<Vec<_>>(), [0, 0, 0, 2, 0, 0]);
    }
}
