//! Many partitions.

use std::sync::Arc;
use std::time::Duration;

use divvy::store::MemoryLeases;
use divvy_testbed::until;
use tokio::task::JoinSet;

use crate::bed::{SOON, on_every_store, settings, start};
use crate::ledger::Ledger;

#[test]
fn ten_workers_share_two_thousand_partitions_with_no_move_at_all() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        let mut controllers = Vec::new();
        // All at once, as a deployment starts them.
        let mut starts = JoinSet::new();
        for number in 0..10 {
            let (store, ledger) = (bed.store(), Arc::clone(&ledger));
            starts.spawn(async move {
                let name = format!("w{number}");
                start(store, &name, settings(2_048), &ledger).await
            });
        }
        while let Some(started) = starts.join_next().await {
            controllers.push(started.unwrap());
        }
        until(SOON, "all run", async || ledger.running() == 2_048).await;
        until(SOON, "all is where it should be", async || {
            controllers.iter().all(|c| c.misaligned().is_empty())
        })
        .await;
        ledger.check();
        for controller in controllers {
            controller.stop().await.unwrap();
        }
        assert_eq!(ledger.running(), 0);
    });
}

#[tokio::test]
async fn what_has_started_is_shown_although_nothing_else_happens() {
    let hour = Duration::from_secs(3600);
    let mut settings = settings(1_000);
    settings.lease.lease_ttl = 3 * hour;
    settings.lease.heartbeat_ttl = 3 * hour;
    settings.lease.renew_interval = hour;
    settings.lease.heartbeat_interval = hour;
    settings.lease.reconcile_interval = hour;
    let store = MemoryLeases::new("tests").unwrap();
    let ledger = Ledger::new();
    let one = start(store.into(), "one", settings, &ledger).await;
    until(SOON, "all run", async || ledger.running() == 1_000).await;
    // Less than until the store is asked again whether it is the same.
    let soon = Duration::from_secs(4);
    until(soon, "all are shown", async || one.owned().len() == 1_000).await;
    one.stop().await.unwrap();
}
