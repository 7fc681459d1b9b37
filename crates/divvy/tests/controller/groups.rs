//! Groups of the store, and of settings that change.

use divvy::lease::{Group, StopReason};
use divvy::store::LeaseName;
use divvy_testbed::until;

use crate::bed::{SOON, on_every_store, settings, settled, start};
use crate::ledger::Ledger;

#[test]
fn groups_of_the_store_are_served_as_they_change_and_bad_ones_keep_the_last_good() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        let store = bed.leases().await;
        let orders = LeaseName::new("group", "orders").unwrap();
        let json = Group::new("orders", 6).unwrap().to_json();
        store.set_group(&orders, &json).await.unwrap();
        let mut dynamic = settings(1);
        dynamic.groups.clear();
        dynamic.dynamic = true;
        let one = start(bed.store(), "one", dynamic.clone(), &ledger).await;
        let two = start(bed.store(), "two", dynamic, &ledger).await;
        settled(&[&one, &two], 6).await;
        let json = Group::new("orders", 12).unwrap().to_json();
        store.set_group(&orders, &json).await.unwrap();
        settled(&[&one, &two], 12).await;
        store
            .set_group(&orders, "{\"units\": \"many\"}")
            .await
            .unwrap();
        let other = LeaseName::new("group", "other").unwrap();
        let json = Group::new("other", 3).unwrap().to_json();
        store.set_group(&other, &json).await.unwrap();
        settled(&[&one, &two], 15).await;
        // A worker that reads a document late is given its share later: moves
        // are no sign that the document was taken for an empty one.
        assert_eq!(
            ledger.stops(StopReason::Unwanted),
            0,
            "the bad document stopped nothing"
        );
        store.remove_group(&orders).await.unwrap();
        settled(&[&one, &two], 3).await;
        assert_eq!(ledger.stops(StopReason::Unwanted), 12);
        ledger.check();
        one.stop().await.unwrap();
        two.stop().await.unwrap();
    });
}

#[test]
fn groups_of_settings_can_be_changed_while_it_runs() {
    on_every_store(async |bed| {
        let ledger = Ledger::new();
        let one = bed.controller("one", 6, &ledger).await;
        settled(&[&one], 6).await;
        let groups = vec![
            Group::new("orders", 2).unwrap(),
            Group::new("mail", 5).unwrap(),
        ];
        one.regroup(groups).await.unwrap();
        until(SOON, "the new groups run", async || ledger.running() == 7).await;
        let twice = vec![
            Group::new("mail", 5).unwrap(),
            Group::new("mail", 6).unwrap(),
        ];
        assert!(one.regroup(twice).await.is_err());
        assert_eq!(one.groups().len(), 2);
        one.stop().await.unwrap();
    });
}
