//! What a manager shows of itself.

use std::sync::Arc;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks};
use divvy::store::MemoryKeyValue;
use divvy_testbed::until;
use tokio::sync::Semaphore;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// Starts and stops only what it gets a permit for.
struct Permitted {
    begun: Arc<Semaphore>,
    starts: Arc<Semaphore>,
    stops: Arc<Semaphore>,
}

#[async_trait]
impl Hooks for Permitted {
    async fn assigned(&self, _partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        self.begun.add_permits(1);
        self.starts.acquire().await?.forget();
        Ok(())
    }

    async fn revoked(&self, _partition: &Partition) -> Result<(), HookError> {
        self.stops.acquire().await?.forget();
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_was_started_and_has_not_been_stopped_is_shown_as_owned() {
    let mut fleet = Fleet::new(Bed::Memory(MemoryKeyValue::new()), 6);
    let semaphore = || Arc::new(Semaphore::new(0));
    let (begun, starts, stops) = (semaphore(), semaphore(), semaphore());
    let hooks = Permitted {
        begun: Arc::clone(&begun),
        starts: Arc::clone(&starts),
        stops: Arc::clone(&stops),
    };
    fleet.join_with("slow", hooks).await;
    let view = fleet.views().remove(0);
    let shown = || view.current_assignment().partitions.len();
    until(SOON, "all starts have begun", async || {
        begun.available_permits() == 6
    })
    .await;
    assert_eq!(shown(), 0);
    starts.add_permits(2);
    until(SOON, "two are started", async || shown() == 2).await;
    starts.add_permits(4);
    until(SOON, "all are started", async || shown() == 6).await;
    fleet.join("other").await;
    let other = fleet.views().remove(1);
    assert_eq!(shown(), 6, "nothing has stopped yet");
    stops.add_permits(6);
    until(SOON, "a part was handed on", async || {
        shown() == 3 && other.current_assignment().partitions.len() == 3
    })
    .await;
    fleet.end().await;
}
