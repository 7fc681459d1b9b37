//! Starts and stops that wait for their turn, and stops that take long.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::controller::{
    Consumer, ConsumerFactory, Controller, ControllerEvent, ControllerEventKind, ControllerSettings,
};
use divvy::lease::StopReason;
use divvy::manager::{Grant, HookError};
use divvy_testbed::{Gate, Proxy, RedisFlavour, RedisOptions, RedisServer, until};
use tokio::sync::mpsc;

use crate::bed::{Bed, SOON, at, settings, settled};
use crate::ledger::Ledger;

/// Longer than a test waits for anything.
const NEVER: Duration = Duration::from_secs(600);

/// What happens to the consumers of a test.
#[derive(Debug, Default)]
struct Gates {
    /// Starts after the first one wait at this gate.
    starts_gate: Gate,
    /// Stops wait at this gate.
    stops_gate: Gate,
    starts: AtomicUsize,
    stops: AtomicUsize,
    /// Whether the grant was current at each start, and at each stop.
    starts_current: Mutex<Vec<bool>>,
    stops_current: Mutex<Vec<(StopReason, bool)>>,
}

#[derive(Debug, Clone, Default)]
struct Gated(Arc<Gates>);

struct GatedConsumer(Arc<Gates>, Grant);

#[async_trait]
impl ConsumerFactory for Gated {
    async fn start(&self, _: &Partition, grant: Grant) -> Result<Box<dyn Consumer>, HookError> {
        let gates = &self.0;
        gates
            .starts_current
            .lock()
            .unwrap()
            .push(grant.is_current());
        if gates.starts.fetch_add(1, Ordering::SeqCst) > 0 {
            gates.starts_gate.pass().await;
        }
        Ok(Box::new(GatedConsumer(Arc::clone(gates), grant)))
    }
}

#[async_trait]
impl Consumer for GatedConsumer {
    async fn stop(self: Box<Self>, reason: StopReason) -> Result<(), HookError> {
        let Self(gates, grant) = *self;
        let is_current = grant.is_current();
        gates
            .stops_current
            .lock()
            .unwrap()
            .push((reason, is_current));
        gates.stops.fetch_add(1, Ordering::SeqCst);
        gates.stops_gate.pass().await;
        Ok(())
    }
}

async fn start(
    store: divvy::controller::LeaseStoreChoice,
    settings: ControllerSettings,
    gated: &Gated,
) -> (Controller, mpsc::Receiver<ControllerEvent>) {
    let (events, heard) = mpsc::channel(1 << 16);
    let controller = Controller::builder(store, gated.clone())
        .settings(settings)
        .worker("one")
        .events(events)
        .start()
        .await
        .unwrap();
    (controller, heard)
}

async fn redis() -> RedisServer {
    RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await
}

/// Waits until so many partitions are said to have stopped.
async fn stopped(heard: &mut mpsc::Receiver<ControllerEvent>, count: usize) {
    let mut seen = 0;
    until(SOON, "partitions are said to have stopped", async || {
        while let Ok(event) = heard.try_recv() {
            let is_stop = matches!(event.kind, ControllerEventKind::Stopped { .. });
            seen += usize::from(is_stop);
        }
        seen == count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_waits_for_its_turn_is_not_called_when_its_worker_stops() {
    let gated = Gated::default();
    gated.0.starts_gate.close();
    let mut narrow = settings(6);
    narrow.hook_concurrency = 1;
    narrow.lease.start_deadline = NEVER;
    let (one, mut heard) = start(Bed::memory().store(), narrow, &gated).await;
    until(SOON, "a start hangs", async || {
        gated.0.starts.load(Ordering::SeqCst) == 2
    })
    .await;
    let stopping = tokio::spawn(one.stop());
    // One that runs, and four that wait behind the one that hangs.
    stopped(&mut heard, 5).await;
    gated.0.starts_gate.open();
    stopping.await.unwrap().unwrap();
    assert_eq!(gated.0.starts.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_starts_that_hang() {
    let gated = Gated::default();
    gated.0.starts_gate.close();
    let mut narrow = settings(4);
    narrow.hook_concurrency = 1;
    narrow.lease.start_deadline = NEVER;
    let (one, _heard) = start(Bed::memory().store(), narrow, &gated).await;
    until(SOON, "a start hangs", async || {
        gated.0.starts.load(Ordering::SeqCst) == 2
    })
    .await;
    let stopping = tokio::spawn(one.stop());
    until(SOON, "what runs is stopped", async || {
        gated.0.stops.load(Ordering::SeqCst) == 1
    })
    .await;
    gated.0.starts_gate.open();
    stopping.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_is_not_called_after_its_lease_ended_while_it_waited_for_its_turn() {
    let server = redis().await;
    let proxy = Proxy::start(server.address()).await;
    let gated = Gated::default();
    gated.0.starts_gate.close();
    let mut narrow = settings(8);
    narrow.hook_concurrency = 1;
    narrow.lease.start_deadline = NEVER;
    let address = format!("redis://127.0.0.1:{}", proxy.port());
    let (one, mut heard) = start(at(&address), narrow, &gated).await;
    until(SOON, "a start hangs", async || {
        gated.0.starts.load(Ordering::SeqCst) == 2
    })
    .await;
    proxy.hold();
    // One that runs, and six that wait behind the one that hangs.
    stopped(&mut heard, 7).await;
    gated.0.starts_gate.open();
    until(SOON, "what was started is stopped", async || {
        gated.0.stops.load(Ordering::SeqCst) == 2
    })
    .await;
    assert_eq!(gated.0.starts.load(Ordering::SeqCst), 2);
    proxy.release();
    proxy.pass();
    settled(&[&one], 8).await;
    let starts = gated.0.starts_current.lock().unwrap().clone();
    assert!(starts.iter().all(|is_current| *is_current), "{starts:?}");
    // The application did not fail: it was not asked.
    assert_eq!(one.metrics().start_failures(), 0);
    one.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_waits_too_long_for_its_turn_is_reported() {
    let gated = Gated::default();
    gated.0.stops_gate.close();
    let mut narrow = settings(4);
    narrow.hook_concurrency = 1;
    narrow.lease.stop_deadline = Duration::from_millis(200);
    let (one, mut heard) = start(Bed::memory().store(), narrow, &gated).await;
    settled(&[&one], 4).await;
    let stopping = tokio::spawn(one.stop());
    let mut told = Vec::new();
    until(SOON, "it is reported", async || {
        while let Ok(event) = heard.try_recv() {
            if let ControllerEventKind::Problem(text) = event.kind {
                told.push(text);
            }
        }
        let text =
            "for its turn, while as many stop hooks run as may at once (hook_concurrency: 1)";
        told.iter().any(|told| told.contains(text))
    })
    .await;
    gated.0.stops_gate.open();
    stopping.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_of_many_deadlines_keeps_its_lease_until_it_returns() {
    let bed = Bed::memory();
    let gated = Gated::default();
    gated.0.stops_gate.close();
    let mut hasty = settings(2);
    hasty.lease.stop_deadline = Duration::from_millis(200);
    hasty.lease.lease_ttl = Duration::from_secs(1);
    hasty.lease.renew_interval = Duration::from_millis(200);
    let deadline = hasty.lease.stop_deadline;
    let (one, _heard) = start(bed.store(), hasty, &gated).await;
    settled(&[&one], 2).await;
    let ledger = Ledger::new();
    let two = bed.controller("two", 2, &ledger).await;
    let stopping = tokio::spawn(one.stop());
    until(SOON, "both are to stop", async || {
        gated.0.stops.load(Ordering::SeqCst) == 2
    })
    .await;
    let begun = tokio::time::Instant::now();
    until(SOON, "ten deadlines have passed", async || {
        assert_eq!(ledger.running(), 0, "started before it has stopped");
        begun.elapsed() > deadline * 10
    })
    .await;
    gated.0.stops_gate.open();
    stopping.await.unwrap().unwrap();
    settled(&[&two], 2).await;
    two.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_grant_of_a_deleted_lease_has_ended_when_its_consumer_is_stopped() {
    let server = redis().await;
    let gated = Gated::default();
    let mut long = settings(2);
    // Much longer than it takes to find out; a new server waits for as long.
    long.lease.lease_ttl = Duration::from_secs(10);
    let (one, _heard) = start(at(&server.url()), long, &gated).await;
    settled(&[&one], 2).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let deleted: usize = redis::cmd("DEL")
        .arg("lease:orders:1")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(deleted, 1);
    until(SOON, "it is stopped", async || {
        gated.0.stops.load(Ordering::SeqCst) == 1
    })
    .await;
    let stops = gated.0.stops_current.lock().unwrap().clone();
    assert_eq!(stops, [(StopReason::Lost, false)]);
    settled(&[&one], 2).await;
    one.stop().await.unwrap();
}
