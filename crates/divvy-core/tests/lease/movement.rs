//! Joins, cooldown, minimum runtime, and groups that change.

use std::time::Duration;

use divvy_core::lease::{Event, Group, LeaseSettings};

use crate::cluster::{Cluster, key, ms, settings};

#[test]
fn a_partition_that_outlives_its_group_is_explained_after_others_have_gone() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.start(Cluster::setup(name, &[("demo", 12)], settings()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 12);
    cluster.pass(ms(5_000));
    let stays = 1;
    let keys: Vec<_> = cluster.places[stays].running.keys().cloned().collect();
    assert!(!keys.is_empty());
    cluster.places[stays].holds_stops = true;
    let other = Group::new("other", 1).unwrap();
    cluster.hand(stays, Event::Regrouped(vec![other]));
    // The one that is left is not the second of two any more.
    cluster.kill(0);
    cluster.pass(ms(30_000));
    let member = &cluster.places[stays].member;
    for key in keys {
        let explained = member.explain(&key).expect("it has not stopped yet");
        assert_eq!(explained.holder.as_deref(), Some("b"));
        assert_eq!(explained.desired, None);
    }
}

#[test]
fn a_third_worker_gets_its_share_with_one_gap_for_each_partition() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.start(Cluster::setup(name, &[("demo", 24)], settings()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    cluster.pass(Duration::from_secs(100));
    cluster.start(Cluster::setup("c", &[("demo", 24)], settings()));
    let took = cluster.until(Duration::from_secs(120), |cluster| {
        cluster.is_settled() && cluster.shares()[2] > 0
    });
    // Two of each worker in five seconds, and their cooldown is over.
    assert!(took < Duration::from_secs(30), "{took:?}");
    let moved = cluster.shares()[2] as u32;
    let starts: u32 = cluster.starts.values().map(|(count, _)| count).sum();
    assert_eq!(starts, 24 + moved, "nothing moved twice, and nothing else");
}

#[test]
fn a_partition_stays_for_its_cooldown_and_its_minimum_runtime() {
    for (cooldown, runtime, least) in [(60, 0, 60), (0, 30, 30)] {
        let slow = LeaseSettings {
            move_cooldown: Duration::from_secs(cooldown),
            min_runtime: Duration::from_secs(runtime),
            ..settings()
        };
        let mut cluster = Cluster::new();
        cluster.start(Cluster::setup("a", &[("demo", 10)], slow.clone()));
        cluster.until(ms(2_000), |cluster| cluster.running() == 10);
        let start = cluster.now;
        cluster.start(Cluster::setup("b", &[("demo", 10)], slow));
        cluster.until(Duration::from_secs(90), |cluster| cluster.shares()[1] > 0);
        let stayed = cluster.now.since(start);
        assert!(stayed >= Duration::from_secs(least), "{stayed:?}");
        assert!(stayed < Duration::from_secs(least + 7), "{stayed:?}");
    }
}

#[test]
fn what_crashed_is_taken_although_its_cooldown_lasts() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.start(Cluster::setup(name, &[("demo", 24)], settings()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    cluster.kill(0);
    cluster.until(ms(11_000), |cluster| cluster.running() == 24);
}

#[test]
fn a_group_that_shrinks_or_goes_stops_at_once_and_one_that_grows_starts() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.start(Cluster::setup(
            name,
            &[("demo", 24), ("more", 8)],
            settings(),
        ));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 32);
    for (groups, count) in [
        (vec![("demo", 10)], 10),
        (vec![("demo", 30), ("new", 5)], 35),
    ] {
        for place in 0..2 {
            let groups = groups.iter();
            let groups = groups.map(|(name, units)| Group::new(name, *units).unwrap());
            cluster.hand(place, Event::Regrouped(groups.collect()));
        }
        let took = cluster.until(ms(6_000), |cluster| cluster.running() == count);
        assert!(took < ms(1_000), "{took:?}");
    }
}

#[test]
fn groups_of_the_store_are_served_and_bad_ones_keep_the_last_good() {
    let mut cluster = Cluster::new();
    cluster.set_group("demo", r#"{"name": "demo", "units": 12}"#);
    for name in ["a", "b"] {
        let mut setup = Cluster::setup(name, &[], settings());
        setup.dynamic = true;
        cluster.start(setup);
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 12);
    for bad in [
        "{",
        "[]",
        r#"{"name": "x", "units": 5}"#,
        r#"{"name": "demo", "units": -1}"#,
        r#"{"name": "demo"}"#,
    ] {
        cluster.set_group("demo", bad);
        cluster.pass(ms(1_000));
        assert_eq!(cluster.running(), 12, "{bad}");
        let problems = cluster.problems(0);
        assert!(problems.last().unwrap().contains("demo"), "{problems:?}");
        assert!(
            problems.last().unwrap().contains("last good"),
            "{problems:?}"
        );
    }
    let told = cluster.problems(0).len();
    cluster.pass(Duration::from_secs(120));
    assert_eq!(cluster.problems(0).len(), told, "told once");
    cluster.set_group("demo", r#"{"name": "demo", "units": 20}"#);
    let took = cluster.until(ms(6_000), |cluster| cluster.running() == 20);
    assert!(took < ms(500), "{took:?}");
}

#[test]
fn a_lease_that_is_granted_after_its_group_has_gone_is_given_back_and_not_started() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("one", 1), ("two", 1)], settings()));
    // Long after it has asked, and before it is answered.
    cluster.places[0].grants_take = ms(700);
    cluster.pass(ms(700));
    assert_eq!(cluster.running(), 0);
    let two = Group::new("two", 1).unwrap();
    cluster.hand(0, Event::Regrouped(vec![two]));
    cluster.until(ms(2_000), |cluster| cluster.running() == 1);
    assert!(!cluster.starts.contains_key(&key("one", 0)));
    cluster.until(ms(100), |cluster| {
        cluster
            .table
            .holder(cluster.time(), &key("one", 0))
            .is_none()
    });
}

#[test]
fn workload_documents_are_read_as_rendezgo_reads_them() {
    for document in [
        r#"{"units": 6}"#,
        r#"{"name": "", "units": 6}"#,
        r#"{"name": null, "units": 6}"#,
        r#"{"Name": "demo", "Units": 6, "MaxConsumersPerNode": 0}"#,
    ] {
        let mut cluster = Cluster::new();
        let mut setup = Cluster::setup("a", &[], settings());
        setup.dynamic = true;
        cluster.start(setup);
        cluster.set_group("demo", document);
        cluster.pass(ms(2_000));
        assert_eq!(cluster.running(), 6, "{document}");
    }
    let limited = Group::from_json("demo", r#"{"Units": 6, "MaxConsumersPerNode": 2}"#).unwrap();
    assert_eq!(
        (limited.partitions(), limited.max_per_worker()),
        (6, Some(2))
    );
}

#[test]
fn document_of_zero_units_stops_its_workload_also_where_settings_name_it() {
    let mut cluster = Cluster::new();
    let mut setup = Cluster::setup("a", &[("demo", 12), ("mail", 3)], settings());
    setup.dynamic = true;
    cluster.start(setup);
    cluster.until(ms(2_000), |cluster| cluster.running() == 15);
    cluster.set_group("demo", r#"{"name": "demo", "units": 0}"#);
    cluster.until(ms(2_000), |cluster| cluster.running() == 3);
    assert!(cluster.problems(0).is_empty(), "{:?}", cluster.problems(0));
    cluster.set_group("demo", r#"{"name": "demo", "units": 4}"#);
    cluster.until(ms(6_000), |cluster| cluster.running() == 7);
}
