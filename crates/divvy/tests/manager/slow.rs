//! What an application brings may block its threads: leases are kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::{ElectionAgent, EventKind, HookError, NoHooks, PartitionSource};
use divvy::{Assignment, Balanced, Error, Partitions, Strategy, Workers};
use divvy_testbed::until;
use tokio::runtime::Runtime;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// Blocks the threads that come to it while it is shut.
#[derive(Debug, Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        let mut is_shut = self.is_shut.lock().unwrap();
        while *is_shut {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            is_shut = self.opened.wait(is_shut).unwrap();
        }
    }

    fn set(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.opened.notify_all();
    }
}

/// While somebody blocks at the gate, this one renews for two leases, and
/// nothing that it has is stopped.
async fn keeps_its_lease(fleet: &mut Fleet, number: usize, gate: &Gate) {
    until(SOON, "something blocks", async || {
        gate.waiting.load(Ordering::SeqCst) > 0
    })
    .await;
    let first = fleet.events(number).len();
    let lease = fleet.settings.leader.heartbeat_ttl;
    let late = divvy::manager::now() + lease * 2;
    until(SOON, "it renews for two leases", async || {
        let mut new = fleet.events(number)[first..].iter();
        new.any(|event| matches!(event.kind, EventKind::Deadline { until: Some(_), .. } if event.at > late))
    })
    .await;
    let is_stop = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::Revoked { .. } | EventKind::SessionEnded { .. }
        )
    };
    let mut new = fleet.events(number)[first..].iter();
    assert!(!new.any(|event| is_stop(&event.kind)));
}

async fn fleet() -> Fleet {
    let mut fleet = Fleet::new(Bed::nats().await, 10);
    fleet.settings.leader.heartbeat_ttl = Duration::from_secs(5);
    fleet.settings.leader.leader_lease = Duration::from_secs(2);
    fleet
}

/// For what blocks.
fn apart() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap()
}

struct Blocking {
    gate: Arc<Gate>,
    partitions: Partitions,
}

#[async_trait]
impl PartitionSource for Blocking {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        self.gate.pass();
        Ok(self.partitions.clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_source_that_blocks_holds_up_no_heartbeat() {
    let (mut fleet, gate) = (fleet().await, Arc::new(Gate::default()));
    let source = Blocking {
        gate: Arc::clone(&gate),
        partitions: fleet.partitions.clone(),
    };
    let apart = apart();
    let recruit = fleet.recruit_from("one", NoHooks, source).await;
    let number = fleet.enlist_on(&apart, recruit).await;
    fleet.owned().await;
    gate.set(true);
    let manager = fleet.workers[number].as_ref().unwrap();
    manager.refresh_partitions().await.unwrap();
    keeps_its_lease(&mut fleet, number, &gate).await;
    gate.set(false);
    fleet.end().await;
    apart.shutdown_background();
}

struct Deaf(Arc<Gate>);

#[async_trait]
impl ElectionAgent for Deaf {
    async fn request_leadership(&self, _worker: &str, _lease: Duration) -> Result<bool, HookError> {
        self.0.pass();
        Ok(true)
    }

    async fn renew_leadership(&self) -> Result<(), HookError> {
        self.0.pass();
        Ok(())
    }

    async fn release_leadership(&self) -> Result<(), HookError> {
        Ok(())
    }

    async fn is_leader(&self) -> bool {
        self.0.pass();
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_election_agent_that_blocks_holds_up_no_heartbeat() {
    let (mut fleet, gate) = (fleet().await, Arc::new(Gate::default()));
    let mut recruit = fleet.recruit("one", NoHooks).await;
    recruit.builder = recruit.builder.election_agent(Deaf(Arc::clone(&gate)));
    let apart = apart();
    let number = fleet.enlist_on(&apart, recruit).await;
    fleet.owned().await;
    gate.set(true);
    keeps_its_lease(&mut fleet, number, &gate).await;
    gate.set(false);
    fleet.leader().await;
    fleet.end().await;
    apart.shutdown_background();
}

#[derive(Debug)]
struct Slow(Arc<Gate>);

impl Strategy for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        self.0.pass();
        Balanced::new().assign(workers, partitions, previous)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_strategy_that_takes_long_holds_up_no_heartbeat() {
    let (mut fleet, gate) = (fleet().await, Arc::new(Gate::default()));
    let mut recruit = fleet.recruit("one", NoHooks).await;
    recruit.builder = recruit.builder.strategy(Slow(Arc::clone(&gate)));
    let leader = fleet.enlist(recruit).await;
    fleet.owned().await;
    gate.set(true);
    fleet.join("two").await;
    keeps_its_lease(&mut fleet, leader, &gate).await;
    let manager = fleet.workers[leader].as_ref().unwrap();
    assert!(manager.is_leader(), "it leads all the time");
    gate.set(false);
    fleet.balanced().await;
    fleet.end().await;
}
