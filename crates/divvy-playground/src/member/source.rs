//! The partitions of a member in leader mode, which others change.

use async_trait::async_trait;
use divvy::manager::{HookError, PartitionSource};
use divvy_core::Partitions;
use tokio::sync::{Mutex, watch};

use super::Habits;

#[derive(Debug)]
pub(super) struct Source {
    habits: Habits,
    /// Counts changes.
    changes: watch::Sender<u64>,
    /// Kept between two calls: what happens then is not missed.
    listening: Mutex<watch::Receiver<u64>>,
}

impl Source {
    pub(super) fn new(habits: Habits) -> Self {
        let (changes, listening) = watch::channel(0);
        Self {
            habits,
            changes,
            listening: Mutex::new(listening),
        }
    }

    /// There are others.
    pub(super) fn change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl PartitionSource for Source {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        Ok(self.habits.now().listed()?)
    }

    async fn changed(&self) {
        let mut listening = self.listening.lock().await;
        let gone = listening.changed().await.is_err();
        assert!(!gone, "this has the sender");
    }
}
