//! Caps, minimums and pace.

use std::time::Duration;

use divvy_core::Considered;
use divvy_core::lease::{Event, Group, LeaseSettings, Member, Misalignment};

use crate::cluster::{Cluster, key, ms, settings};

#[test]
fn what_a_full_worker_cannot_take_goes_to_the_next_in_rank_at_once() {
    let mut cluster = Cluster::new();
    let capped = LeaseSettings {
        max_partitions: 3,
        ..settings()
    };
    cluster.start(Cluster::setup("a", &[("demo", 20)], capped));
    cluster.start(Cluster::setup("b", &[("demo", 20)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 20);
    assert_eq!(cluster.shares(), [3, 17]);
    assert!(cluster.is_settled());
    cluster.pass(Duration::from_secs(300));
    assert!(cluster.starts.values().all(|(count, _)| *count == 1));
}

#[test]
fn nobody_exceeds_its_caps_whoever_comes_and_goes() {
    let mut cluster = Cluster::new();
    for name in ["a", "b", "c", "d"] {
        let capped = LeaseSettings {
            max_partitions: 20,
            max_per_group: 12,
            ..settings()
        };
        cluster.start(Cluster::setup(name, &[("one", 24), ("two", 24)], capped));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 48);
    cluster.kill(0);
    cluster.until(ms(16_000), |cluster| cluster.running() == 48);
    cluster.hand(1, Event::Stop);
    // Two workers have room for 24 of each group in twos of 12, and 40 in all.
    cluster.until(ms(16_000), |cluster| cluster.running() == 40);
    for place in &cluster.places {
        assert!(place.most <= 20);
    }
}

#[test]
fn a_lease_in_doubt_that_no_longer_fits_is_given_back_and_not_started() {
    let mut cluster = Cluster::new();
    let capped = LeaseSettings {
        max_partitions: 1,
        ..settings()
    };
    let group = |name: &str| Group::new(name, 1).unwrap();
    let worker = cluster.start(Cluster::setup("a", &[("one", 1)], capped));
    cluster.places[worker].loses_grants = true;
    let is_granted = |cluster: &Cluster| {
        let holder = cluster.table.holder(cluster.time(), &key("one", 0));
        holder.is_some()
    };
    cluster.until(ms(2_000), is_granted);
    // Its group is gone before the worker knows that it has the lease, and
    // comes back when another partition has taken its room.
    cluster.hand(worker, Event::Regrouped(vec![group("two")]));
    cluster.places[worker].loses_grants = false;
    cluster.until(ms(3_000), |cluster| cluster.running() == 1);
    let both = vec![group("one"), group("two")];
    cluster.hand(worker, Event::Regrouped(both));
    assert!(is_granted(&cluster));
    cluster.until(ms(1_000), |cluster| !is_granted(cluster));
    cluster.pass(ms(20_000));
    assert_eq!(cluster.places[worker].most, 1);
}

#[test]
fn the_limit_of_a_group_holds_for_every_worker() {
    let mut cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        let mut setup = Cluster::setup(name, &[], settings());
        setup.groups = vec![Group::new("demo", 9).unwrap().with_max_per_worker(3)];
        cluster.start(setup);
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 9);
    assert_eq!(cluster.shares(), [3, 3, 3]);
}

#[test]
fn what_nobody_has_room_for_is_told_as_capped_by_one_worker_each() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        let mut setup = Cluster::setup(name, &[], settings());
        setup.groups = vec![Group::new("mail", 4).unwrap().with_max_per_worker(1)];
        cluster.start(setup);
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 2);
    cluster.pass(ms(20_000));
    let members = || cluster.places.iter().map(|place| &place.member);
    let told: Vec<_> = members().flat_map(Member::misaligned).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_ne!(told[0].key, told[1].key);
    assert_eq!(members().map(Member::unowned).sum::<usize>(), 2);
    for told in told {
        assert_eq!((told.desired, told.why), (None, Misalignment::Cap));
        for member in members() {
            let explained = member.explain(&told.key).unwrap();
            assert_eq!(explained.why, Some(Misalignment::Cap));
            let remark = |it: &Considered| it.rejected.clone().unwrap();
            let remarks: Vec<_> = explained.ranking.iter().map(remark).collect();
            assert_eq!(remarks, ["has as many as it may (cap)"; 2]);
        }
    }
}

#[test]
fn limits_that_change_count_from_then_on_and_timings_do_not() {
    let mut cluster = Cluster::new();
    let limited = LeaseSettings {
        max_partitions: 2,
        ..settings()
    };
    let place = cluster.start(Cluster::setup("a", &[("demo", 8)], limited));
    cluster.until(ms(2_000), |cluster| cluster.running() == 2);
    let wider = LeaseSettings {
        max_partitions: 5,
        lease_ttl: Duration::from_secs(60),
        ..settings()
    };
    let tuned = settings().tuned(&wider);
    assert_eq!(
        (tuned.max_partitions, tuned.lease_ttl),
        (5, settings().lease_ttl)
    );
    cluster.hand(place, Event::Tuned(Box::new(wider)));
    cluster.until(ms(7_000), |cluster| cluster.running() == 5);
}

fn limited(max_partitions: u32) -> LeaseSettings {
    LeaseSettings {
        max_partitions,
        move_cooldown: Duration::ZERO,
        min_runtime: Duration::ZERO,
        ..settings()
    }
}

#[test]
fn a_lowered_limit_is_kept_although_nobody_else_has_room() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("demo", 8)], limited(5)));
    cluster.start(Cluster::setup("b", &[("demo", 8)], limited(3)));
    cluster.until(ms(2_000), |cluster| cluster.running() == 8);
    cluster.hand(0, Event::Tuned(Box::new(limited(2))));
    cluster.until(ms(20_000), |cluster| cluster.shares() == [2, 3]);
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.shares(), [2, 3]);
    // Raised again, it takes back what nobody has.
    cluster.hand(0, Event::Tuned(Box::new(limited(5))));
    cluster.until(ms(20_000), |cluster| cluster.shares() == [5, 3]);
}

#[test]
fn a_lowered_limit_of_a_group_is_kept_although_nobody_else_has_room() {
    let mut cluster = Cluster::new();
    let group = |most| {
        let group = Group::new("demo", 8).unwrap();
        vec![group.with_max_per_worker(most)]
    };
    let mut setup = Cluster::setup("a", &[], limited(0));
    setup.groups = group(5);
    cluster.start(setup);
    cluster.until(ms(2_000), |cluster| cluster.running() == 5);
    cluster.hand(0, Event::Regrouped(group(2)));
    cluster.until(ms(20_000), |cluster| cluster.running() == 2);
}

#[test]
fn a_lease_that_is_granted_after_the_limit_was_lowered_again_is_not_started() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("demo", 2)], limited(1)));
    cluster.until(ms(2_000), |cluster| cluster.running() == 1);
    let held = |cluster: &Cluster| {
        let time = cluster.time();
        let holder = |number| cluster.table.holder(time, &key("demo", number));
        (0..2).filter_map(holder).count()
    };
    cluster.places[0].grants_take = ms(300);
    cluster.hand(0, Event::Tuned(Box::new(limited(2))));
    cluster.pass(ms(200));
    assert_eq!(held(&cluster), 1, "it is asked for, and not granted yet");
    cluster.hand(0, Event::Tuned(Box::new(limited(1))));
    cluster.until(ms(300), |cluster| held(cluster) == 2);
    cluster.until(ms(300), |cluster| held(cluster) == 1);
    assert_eq!(cluster.places[0].most, 1);
}

#[test]
fn nobody_gives_up_so_much_that_it_falls_below_its_minimum() {
    let mut cluster = Cluster::new();
    let least = LeaseSettings {
        min_partitions: 4,
        move_cooldown: Duration::ZERO,
        min_runtime: Duration::ZERO,
        releases_per_reconcile: 5,
        ..settings()
    };
    cluster.start(Cluster::setup("a", &[("demo", 5)], least));
    cluster.until(ms(2_000), |cluster| cluster.running() == 5);
    for name in ["b", "c", "d", "e", "f", "g"] {
        cluster.start(Cluster::setup(name, &[("demo", 5)], settings()));
    }
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.shares()[0], 4, "{:?}", cluster.shares());
    assert_eq!(cluster.running(), 5);
}

#[test]
fn what_should_be_elsewhere_is_given_up_two_at_a_time() {
    let mut cluster = Cluster::new();
    let quick = LeaseSettings {
        move_cooldown: Duration::ZERO,
        min_runtime: Duration::ZERO,
        ..settings()
    };
    cluster.start(Cluster::setup("a", &[("demo", 40)], quick.clone()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 40);
    cluster.start(Cluster::setup("b", &[("demo", 40)], quick));
    let before = cluster.now;
    while !cluster.is_settled() || cluster.shares()[1] == 0 {
        cluster.pass(ms(1));
        assert!(cluster.running() >= 38, "{:?}", cluster.shares());
        let span = cluster.now.since(before);
        let most = 2 * (span.as_millis() / 5_000 + 2);
        assert!(
            cluster.shares()[1] as u128 <= most,
            "{:?}",
            cluster.shares()
        );
        assert!(span < Duration::from_secs(120));
    }
    assert!(cluster.starts.values().all(|(count, _)| *count <= 2));
}

#[test]
fn what_a_group_has_lost_counts_for_its_limit_until_it_has_stopped() {
    let mut cluster = Cluster::new();
    let limited = |size| Group::new("demo", size).unwrap().with_max_per_worker(4);
    let mut setup = Cluster::setup("a", &[], settings());
    setup.groups = vec![limited(16)];
    cluster.start(setup);
    cluster.until(ms(2_000), |cluster| cluster.running() == 4);
    cluster.places[0].holds_stops = true;
    cluster.hand(0, Event::Regrouped(vec![limited(4)]));
    cluster.pass(Duration::from_secs(8));
    let lost = cluster.places[0].stops_held.len();
    assert!(lost > 0, "some of the first 16 were beyond the first 4");
    assert_eq!(cluster.places[0].most, 4);
    cluster.places[0].holds_stops = false;
    cluster.let_go(0);
    cluster.until(ms(6_000), |cluster| cluster.running() == 4);
    assert_eq!(cluster.places[0].most, 4);
}

#[test]
fn whoever_knows_of_fewer_units_is_neither_waited_for_nor_given_any_beyond() {
    let mut cluster = Cluster::new();
    for (name, units) in [("a", 12), ("b", 12), ("f", 6)] {
        cluster.start(Cluster::setup(name, &[("orders", units)], settings()));
    }
    // Within the window of a start: those beyond have owners who take them at once.
    cluster.until(ms(2_000), |cluster| cluster.running() == 12);
    cluster.pass(Duration::from_secs(300));
    assert!(cluster.starts.values().all(|(count, _)| *count == 1));
    assert!(cluster.is_settled());
    let explained = cluster.places[0].member.explain(&key("orders", 9)).unwrap();
    let f = explained
        .ranking
        .iter()
        .find(|it| it.worker == "f")
        .unwrap();
    let why = "serves only the first 6 units of it";
    assert_eq!(f.rejected.as_deref(), Some(why));
    for (place, words) in [(0, "12 here, 6 with f"), (2, "6 here, 12 with a")] {
        let told = cluster.problems(place);
        let told: Vec<_> = told.iter().filter(|it| it.contains(words)).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("do not agree on how many units \"orders\" has"));
    }
}

#[test]
fn a_workload_that_grows_is_shared_at_once_and_nobody_disagrees() {
    let mut cluster = Cluster::new();
    cluster.set_group("orders", r#"{"name": "orders", "units": 8}"#);
    for name in ["a", "b", "c"] {
        let mut setup = Cluster::setup(name, &[], settings());
        setup.dynamic = true;
        cluster.start(setup);
    }
    cluster.until(ms(3_000), |cluster| cluster.running() == 8);
    cluster.set_group("orders", r#"{"name": "orders", "units": 32}"#);
    cluster.until(ms(1_500), |cluster| cluster.running() == 32);
    cluster.pass(Duration::from_secs(300));
    assert!(cluster.starts.values().all(|(count, _)| *count == 1));
    assert!(cluster.shares().iter().all(|share| *share > 4));
    assert!((0..3).all(|place| cluster.problems(place).is_empty()));
}

#[test]
fn whoever_hears_first_that_a_workload_grows_leaves_to_the_others_what_is_theirs() {
    let mut cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.start(Cluster::setup(name, &[("orders", 6)], settings()));
    }
    cluster.until(ms(3_000), |cluster| cluster.running() == 6);
    let groups = vec![Group::new("orders", 30).unwrap()];
    cluster.hand(0, Event::Regrouped(groups.clone()));
    // Longer than a store takes to tell, and shorter than a look at everything.
    cluster.pass(settings().reconcile_interval / 2);
    cluster.hand(1, Event::Regrouped(groups.clone()));
    cluster.hand(2, Event::Regrouped(groups));
    cluster.until(ms(3_000), |cluster| cluster.running() == 30);
    cluster.pass(Duration::from_secs(300));
    assert!(cluster.starts.values().all(|(count, _)| *count == 1));
    assert!(cluster.is_settled());
}

#[test]
fn partitions_that_another_does_not_take_are_taken_a_few_at_a_time() {
    let mut cluster = Cluster::new();
    let paced = LeaseSettings {
        acquires_per_reconcile: 2,
        ..settings()
    };
    cluster.start(Cluster::setup("a", &[("demo", 40)], paced));
    let idle = cluster.start(Cluster::setup("b", &[("demo", 40)], settings()));
    // It is alive, and its wishes never reach the store.
    cluster.places[idle].grants_take = Duration::from_secs(3_600);
    cluster.pass(ms(3_000));
    let own = cluster.shares()[0];
    assert!(own > 0 && own < 40, "its own share: {own}");
    let before = cluster.now;
    while cluster.shares()[0] < own + 6 {
        cluster.pass(ms(100));
        let span = cluster.now.since(before);
        let most = own + 2 * (span.as_millis() / 5_000 + 2) as usize;
        assert!(
            cluster.shares()[0] <= most,
            "{:?} after {span:?}",
            cluster.shares()
        );
        assert!(span < Duration::from_secs(60));
    }
}
