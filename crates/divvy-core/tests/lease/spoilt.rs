//! Keys that another program has written over: all that they do not belong to
//! goes on.

use divvy_core::store::WorkerId;

use crate::cluster::{Cluster, key, ms, settings};

fn two(units: u32) -> Cluster {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.start(Cluster::setup(name, &[("demo", units)], settings()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == units as usize);
    cluster.pass(ms(60_000));
    assert!(cluster.is_settled());
    cluster
}

#[test]
fn worker_that_was_never_readable_is_given_nothing() {
    let mut cluster = two(24);
    let starts = cluster.starts.clone();
    let ghost = WorkerId::new("c", "ghost").unwrap();
    cluster.table.spoil_member(&ghost, "no text");
    cluster.pass(ms(120_000));
    assert_eq!(cluster.starts, starts, "nothing is given up for it");
    assert!(cluster.is_settled());
    let told = cluster.problems(0).join("\n");
    assert!(told.contains("worker \"ghost\" says of itself"), "{told}");
    // Whoever says something that can be read gets its share.
    let healthy = r#"{"weight": 1.0}"#;
    cluster.table.spoil_member(&ghost, healthy);
    cluster.until(ms(60_000), |cluster| cluster.starts != starts);
}

#[test]
fn worker_that_cannot_be_read_any_more_keeps_its_share() {
    let mut cluster = two(24);
    let (shares, starts) = (cluster.shares(), cluster.starts.clone());
    let b = WorkerId::new("c", "b").unwrap();
    for _ in 0..100 {
        assert!(cluster.table.spoil_info(&b, "no text"));
        cluster.pass(ms(500));
    }
    assert_eq!((cluster.shares(), &cluster.starts), (shares, &starts));
}

#[test]
fn spoilt_lease_stops_one_partition_until_its_key_is_deleted() {
    let mut cluster = two(24);
    let starts = cluster.starts.clone();
    let spoilt = [key("demo", 3), key("demo", 4)];
    cluster.table.spoil_lease(&spoilt[0], "no text");
    cluster.table.spoil_fence(&spoilt[1]);
    cluster.pass(ms(120_000));
    assert_eq!(cluster.running(), 22);
    assert_eq!(cluster.starts, starts, "the others run on");
    let told = (0..2).flat_map(|place| cluster.problems(place));
    assert!(told.into_iter().any(|it| it.contains("DEL lease:demo:3")));
    for key in &spoilt {
        cluster.table.delete_spoilt(key);
    }
    cluster.until(ms(20_000), |cluster| cluster.running() == 24);
}

#[test]
fn mark_that_never_expires_keeps_no_other_partition_where_it_is() {
    let mut cluster = Cluster::new();
    let setup = |name| {
        let mut setup = Cluster::setup(name, &[("demo", 12)], settings());
        setup.batches.candidates = 1;
        setup
    };
    cluster.start(setup("a"));
    cluster.until(ms(2_000), |cluster| cluster.running() == 12);
    cluster.pass(ms(1_000));
    for number in 0..6 {
        cluster.table.spoil_moved(&key("demo", number));
    }
    cluster.start(setup("b"));
    cluster.pass(ms(400_000));
    let moved = |cluster: &Cluster| {
        cluster
            .moves()
            .iter()
            .filter(|it| it.from.is_some())
            .count()
    };
    assert!(moved(&cluster) > 0, "some of the others are given up");
    let left = cluster.places[0].member.misaligned();
    let left: Vec<_> = left.map(|it| it.key.number).collect();
    assert!(
        !left.is_empty() && left.iter().all(|it| *it < 6),
        "{left:?}"
    );
    for number in 0..6 {
        cluster.table.delete_spoilt(&key("demo", number));
    }
    cluster.until(ms(200_000), Cluster::is_settled);
}
