//! Hooks that wait for their turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, ManagerError, Shutdown};
use divvy_testbed::{Gate, until};

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// Longer than a test waits for anything.
const NEVER: Duration = Duration::from_secs(600);

/// Where starts after the first one, and calls for what is removed, wait.
#[derive(Debug, Default)]
struct Gates {
    starts_gate: Gate,
    changes_gate: Gate,
    starts: AtomicUsize,
    stops: AtomicUsize,
    /// Grants, and whether they were current when they came.
    grants: Mutex<Vec<(Grant, bool)>>,
    errors: Mutex<Vec<String>>,
}

#[derive(Debug, Clone, Default)]
struct Gated(Arc<Gates>);

impl Gated {
    fn stops(&self) -> usize {
        self.0.stops.load(Ordering::SeqCst)
    }

    async fn second_start(&self) {
        until(SOON, "two have started", async || {
            self.0.starts.load(Ordering::SeqCst) >= 2
        })
        .await;
    }
}

#[async_trait]
impl Hooks for Gated {
    async fn assigned(&self, _: &Partition, grant: Grant) -> Result<(), HookError> {
        let is_current = grant.is_current();
        self.0.grants.lock().unwrap().push((grant, is_current));
        if self.0.starts.fetch_add(1, Ordering::SeqCst) > 0 {
            self.0.starts_gate.pass().await;
        }
        Ok(())
    }

    async fn revoked(&self, _: &Partition) -> Result<(), HookError> {
        self.0.stops.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn assignment_changed(
        &self,
        _added: &[Partition],
        removed: &[Partition],
    ) -> Result<(), HookError> {
        if !removed.is_empty() {
            self.0.changes_gate.pass().await;
        }
        Ok(())
    }

    async fn error(&self, error: &ManagerError) {
        self.0.errors.lock().unwrap().push(error.to_string());
    }
}

fn narrow(partitions: u32, concurrency: usize) -> Fleet {
    let mut fleet = Fleet::new(Bed::memory(), partitions);
    fleet.settings.hook_concurrency = concurrency;
    fleet.settings.leader.start_deadline = NEVER;
    fleet.settings.leader.stop_deadline = NEVER;
    fleet.settings.leader.shutdown_timeout = NEVER;
    fleet
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_starts_that_hang() {
    let mut fleet = narrow(4, 1);
    let gated = Gated::default();
    gated.0.starts_gate.close();
    let one = fleet.join_with("one", gated.clone()).await;
    gated.second_start().await;
    let manager = fleet.workers[one].take().unwrap();
    let stopping = tokio::spawn(manager.stop(Shutdown::Leave));
    until(SOON, "what runs is stopped", async || gated.stops() == 1).await;
    gated.0.starts_gate.open();
    stopping.await.unwrap().unwrap();
    fleet.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_is_not_called_after_the_lease_ended_while_it_waited_for_its_turn() {
    let mut fleet = narrow(6, 1);
    let gated = Gated::default();
    gated.0.starts_gate.close();
    let one = fleet.join_with("one", gated.clone()).await;
    gated.second_start().await;
    fleet.cut(one, true);
    until(
        SOON,
        "what runs is stopped, and the lease has ended",
        async || {
            let grants = gated.0.grants.lock().unwrap();
            gated.stops() == 1 && !grants.iter().any(|(grant, _)| grant.is_current())
        },
    )
    .await;
    gated.0.starts_gate.open();
    until(SOON, "what was started meanwhile is stopped", async || {
        gated.stops() == 2
    })
    .await;
    assert_eq!(gated.0.starts.load(Ordering::SeqCst), 2);
    fleet.cut(one, false);
    fleet.owned().await;
    let grants = gated.0.grants.lock().unwrap().clone();
    assert!(
        grants.iter().all(|(_, is_current)| *is_current),
        "{grants:?}"
    );
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_waits_for_its_turn_is_handed_on_without_being_called() {
    let mut fleet = narrow(6, 1);
    let (gated, other) = (Gated::default(), Gated::default());
    gated.0.starts_gate.close();
    fleet.join_with("one", gated.clone()).await;
    gated.second_start().await;
    fleet.join_with("two", other.clone()).await;
    // Of its three, one may be the one that hangs; what runs is only one.
    other.second_start().await;
    assert_eq!(gated.0.starts.load(Ordering::SeqCst), 2);
    gated.0.starts_gate.open();
    fleet.owned().await;
    assert_eq!(*gated.0.errors.lock().unwrap(), [""; 0], "nothing failed");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_that_have_returned_keep_no_place_for_an_assignment_changed_that_hangs() {
    let mut fleet = narrow(6, 2);
    let gated = Gated::default();
    gated.0.changes_gate.close();
    let one = fleet.join_with("one", gated.clone()).await;
    fleet.owned().await;
    let manager = fleet.workers[one].take().unwrap();
    let stopping = tokio::spawn(manager.stop(Shutdown::Leave));
    until(SOON, "all are stopped", async || gated.stops() == 6).await;
    gated.0.changes_gate.open();
    stopping.await.unwrap().unwrap();
    fleet.check();
}
