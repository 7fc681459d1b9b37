//! What a manager shows of itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, Shutdown};
use divvy::observer::{Observer, WorkerLife};
use divvy::store::{MemoryKeyValue, StoreSettings};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_not_back_in_time_is_shown_as_left_and_no_longer_as_away() {
    let store = MemoryKeyValue::new();
    let mut fleet = Fleet::settled(Bed::Memory(store.clone()), 2, 6).await;
    let id = fleet.views()[1].worker_id().unwrap();
    // Each look is the first of its observer, as that of `divvy status` is.
    let life = async || {
        let mut observer = Observer::of_leader(Arc::new(store.clone()));
        let seen = observer.look().await.unwrap();
        seen.worker(&id).unwrap().life
    };
    let within = Duration::from_secs(2);
    fleet.stop(1, Shutdown::Return { within }).await.unwrap();
    assert_eq!(life().await, WorkerLife::Away);
    fleet.owned().await;
    assert_eq!(life().await, WorkerLife::Left);
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_looks_for_a_cluster_that_is_not_there_is_told_which_are() {
    for bed in [Bed::file(), Bed::redis().await, Bed::nats().await] {
        let url = bed.address().unwrap().parse().unwrap();
        let fleet = Fleet::settled(bed, 1, 2).await;
        let opened = Observer::open(&url, &StoreSettings::default(), None).await;
        let told = opened.unwrap_err().to_string();
        assert!(told.contains("there is no cluster 'default'"), "{told}");
        assert!(
            told.ends_with("; there is 'tests' (--cluster)"),
            "{url}: {told}"
        );
        fleet.end().await;
    }
}
