//! What lease stores tell their clients, so that nobody has to poll.

use divvy_core::store::LeaseNotice;
use tokio::sync::broadcast;

/// Notices that wait for a slow reader; beyond, it is told to read everything.
const WAITING_MAX: usize = 1024;

/// Notices as they come.
#[derive(Debug)]
pub struct LeaseNotices {
    receiver: broadcast::Receiver<LeaseNotice>,
}

impl LeaseNotices {
    /// Waits for the next notice. Dropping the future loses none.
    pub async fn next(&mut self) -> LeaseNotice {
        match self.receiver.recv().await {
            Ok(notice) => notice,
            Err(broadcast::error::RecvError::Lagged(_)) => LeaseNotice::Resync,
            // The store is gone, and nothing will happen any more.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The writing end of notices, for those who write a store. Clones are the
/// same.
#[derive(Debug, Clone)]
pub struct NoticeBoard {
    sender: broadcast::Sender<LeaseNotice>,
}

impl Default for NoticeBoard {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(WAITING_MAX),
        }
    }
}

impl NoticeBoard {
    /// Tells everyone who listens.
    pub fn post(&self, notice: LeaseNotice) {
        // Nobody listening is as good as everyone told.
        let _listeners = self.sender.send(notice);
    }

    /// What [`Leases::notices`](super::Leases::notices) gives.
    pub fn subscribe(&self) -> LeaseNotices {
        LeaseNotices {
            receiver: self.sender.subscribe(),
        }
    }
}
