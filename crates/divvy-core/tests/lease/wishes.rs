//! What operators wish, and what is told of moves.

use std::time::Duration;

use divvy_core::Control;
use divvy_core::lease::{Event, Misalignment, Report, StopReason};

use crate::cluster::{Cluster, key, ms, settings};

const UNITS: u32 = 24;

fn three_workers() -> Cluster {
    let mut cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.start(Cluster::setup(name, &[("demo", UNITS)], settings()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == UNITS as usize);
    cluster.pass(Duration::from_secs(100));
    cluster
}

fn wish(cluster: &mut Cluster, change: impl FnOnce(&mut Control)) {
    let mut control = Control::default();
    change(&mut control);
    cluster.wish(std::str::from_utf8(&control.encode()).unwrap());
}

#[test]
fn a_drained_worker_gives_up_everything_at_once_and_gets_it_back() {
    let mut cluster = three_workers();
    let before = cluster.shares();
    wish(&mut cluster, |control| {
        control.drained.insert("b".into());
    });
    let took = cluster.until(ms(2_000), |cluster| {
        cluster.shares()[1] == 0 && cluster.running() == UNITS as usize
    });
    assert!(took < ms(1_000), "{took:?}");
    wish(&mut cluster, |_| {});
    cluster.until(Duration::from_secs(200), |cluster| {
        cluster.is_settled() && cluster.shares() == before
    });
    cluster.pass(ms(10));
    let drained = cluster.moves().into_iter();
    let drained = drained.filter(|entry| entry.cause == "an operator drained its worker");
    assert_eq!(drained.count(), before[1]);
}

#[test]
fn a_worker_that_its_own_people_drain_is_healthy_and_drained() {
    let mut cluster = three_workers();
    cluster.hand(0, Event::DrainAsked(true));
    cluster.until(ms(10_000), |cluster| {
        cluster.places[0].running.is_empty() && cluster.running() == UNITS as usize
    });
    let mut ended = cluster.places[0].reports.iter().filter_map(|it| match it {
        Report::Ended { reason, .. } => Some(*reason),
        _ => None,
    });
    assert!(ended.all(|reason| reason == StopReason::Drained));
    let explained = cluster.places[1].member.explain(&key("demo", 0)).unwrap();
    let first = explained.ranking.iter().find(|it| it.worker == "a");
    let refused = first.and_then(|it| it.rejected.as_deref());
    assert_eq!(refused, Some("is drained"));
    cluster.hand(0, Event::DrainAsked(false));
    cluster.until(ms(200_000), |cluster| !cluster.places[0].running.is_empty());
}

#[test]
fn a_cordoned_worker_keeps_what_it_has_and_takes_nothing_more() {
    let mut cluster = three_workers();
    let before = cluster.shares();
    wish(&mut cluster, |control| {
        control.cordoned.insert("b".into());
    });
    cluster.pass(Duration::from_secs(100));
    assert_eq!(cluster.shares(), before, "nothing moves for it");
    let cordoned = cluster.places[1].member.misaligned();
    let cordoned: Vec<_> = cordoned.map(|misaligned| misaligned.why).collect();
    assert_eq!(cordoned, vec![Misalignment::Cordoned; before[1]]);
    cluster.kill(0);
    cluster.until(ms(11_500), |cluster| cluster.running() == UNITS as usize);
    assert_eq!(cluster.shares()[1], before[1], "the others take it all");
}

#[test]
fn where_all_are_drained_nobody_gives_up_anything() {
    let mut cluster = three_workers();
    let before = cluster.shares();
    wish(&mut cluster, |control| {
        control.drained.extend(["a", "b", "c"].map(Into::into));
    });
    cluster.pass(Duration::from_secs(100));
    assert_eq!(cluster.shares(), before);
}

#[test]
fn a_pinned_partition_goes_where_it_is_pinned_and_back() {
    let mut cluster = three_workers();
    let unit = key("demo", 7);
    let owner = |cluster: &Cluster| {
        let places = cluster.places.iter();
        let mut owners = places.enumerate();
        let owner =
            owners.find(|(_, place)| place.is_up && place.running.contains_key(&key("demo", 7)));
        owner.map(|(owner, _)| owner)
    };
    let home = owner(&cluster).unwrap();
    let away = (home + 1) % 3;
    let name = ["a", "b", "c"][away];
    wish(&mut cluster, |control| {
        control.pinned.insert(unit.to_string(), name.into());
    });
    cluster.until(Duration::from_secs(10), |cluster| {
        owner(cluster) == Some(away)
    });
    cluster.pass(ms(10));
    let pinned = cluster.moves().into_iter().rev();
    let mut pinned = pinned.filter(|entry| entry.partition == "demo:7");
    let taken = pinned.next().unwrap();
    assert_eq!(taken.to.as_deref(), Some(name));
    assert_eq!(taken.cause, "an operator pinned it here");
    let given = pinned.next().unwrap();
    assert_eq!(given.cause, format!("{name} should have it"));

    // Whoever cannot have it does not get it.
    cluster.kill(away);
    cluster.until(ms(11_500), |cluster| owner(cluster).is_some());
    wish(&mut cluster, |_| {});
    cluster.until(Duration::from_secs(200), |cluster| {
        cluster.is_settled() && owner(cluster) == Some(home)
    });
}

#[test]
fn a_refresh_reads_groups_anew_and_what_cannot_be_read_changes_nothing() {
    let mut cluster = Cluster::new();
    let mut setup = Cluster::setup("a", &[], settings());
    setup.dynamic = true;
    cluster.start(setup);
    cluster.pass(Duration::from_secs(3));
    let group = divvy_core::store::LeaseName::new("group", "late").unwrap();
    // Nobody is told of it.
    cluster
        .table
        .set_group(&group, r#"{"name": "late", "units": 3}"#);
    cluster.pass(ms(500));
    assert_eq!(cluster.running(), 0);
    wish(&mut cluster, |control| control.refresh = 1);
    cluster.until(ms(500), |cluster| cluster.running() == 3);

    wish(&mut cluster, |control| {
        control.cordoned.insert("a".into());
        control.refresh = 1;
    });
    cluster.pass(ms(100));
    cluster.wish("{");
    cluster.pass(Duration::from_secs(20));
    let told = cluster.problems(0);
    let told: Vec<_> = told
        .iter()
        .filter(|text| text.contains("operators"))
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("divvy:wishes:"), "{told:?}");
    cluster
        .table
        .set_group(&group, r#"{"name": "late", "units": 5}"#);
    cluster.pass(Duration::from_secs(40));
    assert_eq!(cluster.running(), 3, "it is still cordoned");
}

#[test]
fn members_are_told_when_one_comes_or_goes_and_not_when_one_changes() {
    let mut cluster = three_workers();
    let told = |cluster: &Cluster| {
        let reports = cluster.places[0].reports.iter();
        reports
            .filter(|it| matches!(it, Report::Members(_)))
            .count()
    };
    let before = told(&cluster);
    wish(&mut cluster, |control| {
        control.cordoned.insert("b".to_owned());
    });
    cluster.pass(ms(10_000));
    assert_eq!(told(&cluster), before);
}

#[test]
fn what_is_given_up_is_told_with_who_should_have_it_and_who_was_passed_over() {
    let mut cluster = three_workers();
    wish(&mut cluster, |control| {
        control.drained.insert("a".to_owned());
    });
    cluster.until(ms(10_000), |cluster| cluster.places[0].running.is_empty());
    cluster.pass(ms(5_000));
    let moves = cluster.moves().into_iter();
    let given_up: Vec<_> = moves
        .filter(|it| it.from.as_deref() == Some("a") && it.to.is_none())
        .collect();
    assert!(!given_up.is_empty());
    for entry in given_up {
        let considered = &entry.considered;
        assert!(considered.iter().all(|it| it.score.is_some()), "{entry:?}");
        let refused = considered.iter().find(|it| it.worker == "a");
        let refused = refused.and_then(|it| it.rejected.as_deref());
        assert_eq!(refused, Some("is drained"), "{entry:?}");
    }
}

#[test]
fn moves_are_told_with_their_causes_and_who_was_considered() {
    let mut cluster = three_workers();
    let entries = cluster.moves();
    assert_eq!(entries.len(), UNITS as usize);
    for entry in &entries {
        assert_eq!(entry.cause, "it was free, and this worker is first in rank");
        let considered = &entry.considered;
        assert_eq!(considered.len(), 3);
        assert_eq!(Some(&considered[0].worker), entry.to.as_ref());
        assert!(considered.is_sorted_by(|a, b| a.score > b.score));
        assert!(considered.iter().all(|worker| worker.rejected.is_none()));
        assert!(entry.token.is_some() && entry.unix_ms > 0);
    }
    cluster.kill(0);
    cluster.until(ms(11_500), |cluster| cluster.running() == UNITS as usize);
    cluster.pass(ms(10));
    let entries = cluster.moves().split_off(UNITS as usize);
    assert!(!entries.is_empty());
    for entry in entries {
        assert_eq!(entry.from.as_deref(), Some("a"));
        let cause = "a let its lease run out, and this worker is next in rank";
        assert_eq!(entry.cause, cause);
        let first = &entry.considered[0];
        let is_gone = first.rejected.as_deref() == Some("is gone: its lease ran out");
        assert!(first.worker != "a" || is_gone, "{first:?}");
    }
}

#[test]
fn what_a_live_owner_keeps_is_nobodys_failure_to_take_it() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("demo", UNITS)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == UNITS as usize);
    cluster.start(Cluster::setup("b", &[("demo", UNITS)], settings()));
    cluster.pass(ms(3_000));
    let member = &cluster.places[0].member;
    let kept: Vec<_> = member.misaligned().map(|it| it.key).collect();
    assert!(!kept.is_empty());
    for key in kept {
        let explained = member.explain(&key).unwrap();
        assert_eq!(explained.holder.as_deref(), Some("a"));
        assert_eq!(explained.why, Some(Misalignment::MinRuntime));
        assert_eq!(explained.desired.as_deref(), Some("b"));
        let mut ranking = explained.ranking.iter();
        assert!(ranking.all(|worker| worker.rejected.is_none()));
    }
}
