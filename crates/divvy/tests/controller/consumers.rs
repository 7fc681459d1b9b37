//! Consumers that fail, panic or do not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::controller::{Consumer, ConsumerFactory, Controller, ControllerError};
use divvy::lease::StopReason;
use divvy::manager::{Grant, HookError};
use divvy_testbed::until;

use crate::bed::{Bed, SOON, on_every_store, settings, settled};
use crate::ledger::Ledger;

#[test]
fn a_consumer_that_cannot_be_started_is_tried_again_until_it_can() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        ledger.fails.store(true, Ordering::SeqCst);
        let one = bed.controller("one", 4, &ledger).await;
        until(SOON, "starts fail", async || {
            one.metrics().start_failures() >= 4
        })
        .await;
        ledger.fails.store(false, Ordering::SeqCst);
        settled(&[&one], 4).await;
        one.stop().await.unwrap();
    });
}

/// Blocks its thread at the start of `orders:0`, panics at that of `orders:1`,
/// and stops only when it is let.
struct Awkward {
    may_stop: Arc<AtomicBool>,
    panics: Arc<AtomicUsize>,
}

struct Stubborn(Arc<AtomicBool>);

#[async_trait]
impl ConsumerFactory for Awkward {
    async fn start(&self, partition: &Partition, _: Grant) -> Result<Box<dyn Consumer>, HookError> {
        if partition.as_str() == "orders:1" {
            self.panics.fetch_add(1, Ordering::SeqCst);
            panic!("as it does");
        }
        Ok(Box::new(Stubborn(Arc::clone(&self.may_stop))))
    }
}

#[async_trait]
impl Consumer for Stubborn {
    async fn stop(self: Box<Self>, _: StopReason) -> Result<(), HookError> {
        while !self.0.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_kept_while_consumers_panic_and_do_not_stop() {
    let bed = Bed::memory();
    let (may_stop, panics) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let awkward = Awkward {
        may_stop: Arc::clone(&may_stop),
        panics: Arc::clone(&panics),
    };
    let mut short = settings(3);
    short.lease.lease_ttl = Duration::from_secs(1);
    short.lease.renew_interval = Duration::from_millis(200);
    short.lease.heartbeat_interval = Duration::from_millis(200);
    let one = Controller::builder(bed.store(), awkward)
        .settings(short.clone())
        .worker("one")
        .start()
        .await
        .unwrap();
    until(SOON, "two run and one panics", async || {
        let running = one
            .owned()
            .iter()
            .filter(|owned| !owned.is_stopping)
            .count();
        running >= 2 && panics.load(Ordering::SeqCst) >= 2
    })
    .await;
    let ledger = Ledger::new();
    let two = bed.controller("two", 3, &ledger).await;
    let stopping = tokio::spawn(one.stop());
    let begun = tokio::time::Instant::now();
    // What does not stop keeps its lease, for longer than a lease lasts.
    until(SOON, "three leases' time has passed", async || {
        assert!(ledger.running() <= 1, "only what does not run is taken");
        begun.elapsed() > short.lease.lease_ttl * 3
    })
    .await;
    may_stop.store(true, Ordering::SeqCst);
    stopping.await.unwrap().unwrap();
    settled(&[&two], 3).await;
    two.stop().await.unwrap();
}

#[test]
fn a_stop_that_takes_too_long_is_an_error_and_leaves() {
    on_every_store(async |bed| {
        let awkward = Awkward {
            may_stop: Arc::default(),
            panics: Arc::default(),
        };
        let mut hasty = settings(1);
        hasty.lease.shutdown_timeout = Duration::from_millis(300);
        let one = Controller::builder(bed.store(), awkward)
            .settings(hasty)
            .start()
            .await
            .unwrap();
        one.wait_until(|owned| owned.len() == 1).await;
        let store = bed.leases().await;
        assert_eq!(store.members().await.unwrap().len(), 1);
        let stopped = one.stop().await;
        assert!(matches!(stopped, Err(ControllerError::StopTimedOut { .. })));
        // Long before its heartbeat or its session could run out.
        assert_eq!(store.members().await.unwrap(), []);
    });
}
