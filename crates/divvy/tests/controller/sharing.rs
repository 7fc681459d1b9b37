//! Joining, leaving and being refused.

use divvy::controller::{Controller, ControllerError};
use divvy::lease::StopReason;
use divvy_testbed::until;

use crate::bed::{Bed, SOON, on_every_store, settings, settled};
use crate::ledger::Ledger;

#[test]
fn workers_share_everything_and_whoever_stops_hands_on() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        let one = bed.controller("one", 24, &ledger).await;
        let two = bed.controller("two", 24, &ledger).await;
        settled(&[&one, &two], 24).await;
        assert!(ledger.running_at("one") > 0 && ledger.running_at("two") > 0);
        let three = bed.controller("three", 24, &ledger).await;
        settled(&[&one, &two, &three], 24).await;
        two.stop().await.unwrap();
        settled(&[&one, &three], 24).await;
        assert_eq!(ledger.running(), 24);
        ledger.check();
        one.stop().await.unwrap();
        three.stop().await.unwrap();
        assert_eq!(ledger.running(), 0);
        assert!(ledger.stops(StopReason::Shutdown) >= 24);
        let leases = bed.leases().await;
        assert!(leases.members().await.unwrap().is_empty());
    });
}

#[test]
fn a_controller_that_is_dropped_leaves_in_order() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        let one = bed.controller("one", 8, &ledger).await;
        settled(&[&one], 8).await;
        drop(one);
        until(SOON, "nothing runs", async || ledger.running() == 0).await;
        let two = bed.controller("two", 8, &ledger).await;
        settled(&[&two], 8).await;
        ledger.check();
        two.stop().await.unwrap();
    });
}

#[test]
fn a_second_process_with_the_same_name_is_refused_and_disturbs_nothing() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        let one = bed.controller("one", 8, &ledger).await;
        settled(&[&one], 8).await;
        let twin = Controller::builder(bed.store(), ledger.factory("twin"))
            .settings(settings(8))
            .worker("one")
            .start()
            .await;
        let refused = twin.unwrap_err();
        assert!(matches!(&refused, ControllerError::NameTaken(name) if &**name == "one"));
        assert!(refused.to_string().contains("'one'"), "{refused}");
        assert_eq!(
            (ledger.running_at("one"), ledger.running_at("twin")),
            (8, 0)
        );
        assert_eq!(ledger.starts(), 8);
        one.stop().await.unwrap();
    });
}

#[test]
fn an_unhealthy_worker_hands_on_and_weights_shift_the_shares() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        let one = bed.controller("one", 32, &ledger).await;
        let two = bed.controller("two", 32, &ledger).await;
        settled(&[&one, &two], 32).await;
        one.report_health(false);
        until(SOON, "all is at two", async || {
            ledger.running_at("two") == 32
        })
        .await;
        one.report_health(true);
        one.report_weight(1000.0).unwrap();
        until(SOON, "nearly all is at one", async || {
            ledger.running_at("one") > 28
        })
        .await;
        assert!(one.report_weight(-1.0).is_err());
        ledger.check();
        one.stop().await.unwrap();
        two.stop().await.unwrap();
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_nobody_takes_are_counted() {
    let (bed, ledger) = (Bed::memory(), Ledger::new());
    let (sender, _unread) = tokio::sync::mpsc::channel(1);
    let one = Controller::builder(bed.store(), ledger.factory("one"))
        .settings(settings(4))
        .worker("one")
        .events(sender)
        .start()
        .await
        .unwrap();
    until(SOON, "all but one event is lost", async || {
        let page = one.render_metrics();
        let lost = page
            .lines()
            .find(|line| line.starts_with("divvy_lease_events_lost_total"));
        lost.is_some_and(|line| !line.ends_with(" 0"))
    })
    .await;
    one.stop().await.unwrap();
}
