//! Many partitions.

use std::sync::Arc;

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
