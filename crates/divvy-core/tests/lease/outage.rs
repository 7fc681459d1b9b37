//! A store that fails, forgets or is out of reach.

use std::time::Duration;

use divvy_core::leader::HookEnd;
use divvy_core::lease::{Batches, Event, LeaseSettings, MemberSetup, Misalignment, Report};
use divvy_core::store::{LeaseName, LeaseTable, Nonce, Tenure, WorkerId, WorkerInfo};

use crate::cluster::{CLUSTER, Cluster, key, ms, settings};

fn two() -> Cluster {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.start(Cluster::setup(name, &[("demo", 24)], settings()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    cluster.pass(ms(5_000));
    cluster
}

#[test]
fn a_worker_that_is_cut_off_stops_before_another_starts() {
    let mut cluster = two();
    cluster.places[0].is_cut_off = true;
    // The bed refuses a start beside one that runs, unless it is cut off: here
    // it must have stopped before.
    let lost = cluster.shares()[0];
    let stopped = cluster.until(ms(11_000), |cluster| cluster.shares()[0] == 0);
    assert!(cluster.shares()[1] + lost == 24, "nothing was taken before");
    cluster.until(ms(5_000), |cluster| cluster.shares()[1] == 24);
    assert!(stopped < ms(10_000), "{stopped:?}");
    cluster.places[0].is_cut_off = false;
    cluster.until(Duration::from_secs(240), Cluster::is_settled);
    assert!(cluster.shares()[0] > 0, "it takes part again");
}

#[test]
fn all_leases_of_a_worker_are_renewed_where_one_operation_is_not_enough() {
    let mut cluster = Cluster::new();
    let batch = Batches::default().renewals as u32;
    let many = batch * 2 + batch / 2;
    cluster.start(Cluster::setup("a", &[("demo", many)], settings()));
    cluster.until(ms(5_000), |cluster| cluster.running() == many as usize);
    cluster.pass(ms(30_000));
    assert_eq!(cluster.running(), many as usize);
    assert!(cluster.starts.values().all(|(count, _)| *count == 1));
}

#[test]
fn a_lease_whose_grant_was_answered_late_is_renewed_in_time() {
    let mut cluster = Cluster::new();
    let settings = LeaseSettings {
        renew_interval: ms(4_500),
        operation_timeout: ms(10_000),
        ..settings()
    };
    let worker = cluster.start(Cluster::setup("a", &[("demo", 1)], settings));
    // All leases were due to be renewed just before this one was known.
    cluster.places[worker].grants_take = ms(4_500);
    cluster.until(ms(6_000), |cluster| cluster.running() == 1);
    cluster.pass(ms(20_000));
    assert_eq!(cluster.running(), 1);
    assert_eq!(cluster.starts[&key("demo", 0)].0, 1);
}

#[test]
fn a_short_outage_interrupts_nothing_and_a_long_one_everything() {
    let mut cluster = two();
    cluster.is_down = true;
    cluster.pass(ms(4_000));
    assert!(cluster.places[0].member.backoff_active() || cluster.running() == 24);
    assert_eq!(cluster.running(), 24);
    cluster.is_down = false;
    cluster.pass(ms(4_000));
    assert!(cluster.starts.values().all(|(count, _)| *count == 1));
    cluster.is_down = true;
    cluster.until(ms(11_000), |cluster| cluster.running() == 0);
    cluster.pass(ms(60_000));
    cluster.is_down = false;
    let took = cluster.until(ms(32_000), |cluster| cluster.running() == 24);
    assert!(took <= ms(32_000), "{took:?}");
    let reports = &cluster.places[0].reports;
    assert!(
        reports
            .iter()
            .any(|report| matches!(report, Report::Backoff(_)))
    );
    assert!(reports.contains(&Report::Recovered));
}

#[test]
fn after_an_outage_work_goes_on_as_soon_as_the_store_answers_and_where_it_was() {
    let mut cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.start(Cluster::setup(name, &[("demo", 24)], settings()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    cluster.pass(ms(5_000));
    let before = cluster.shares();
    for _ in 0..5 {
        cluster.starts.clear();
        cluster.is_down = true;
        cluster.pass(ms(36_000));
        assert_eq!(cluster.running(), 0);
        cluster.is_down = false;
        // The pause after many failures may be 30 s long.
        cluster.until(ms(5_000), |cluster| cluster.running() == 24);
        cluster.pass(ms(200_000));
        assert_eq!(cluster.shares(), before);
        assert!(cluster.starts.values().all(|(count, _)| *count == 1));
    }
}

#[test]
fn whoever_comes_back_alone_waits_for_the_others_only_for_a_while() {
    let mut cluster = two();
    cluster.is_down = true;
    cluster.pass(ms(36_000));
    cluster.kill(1);
    cluster.is_down = false;
    cluster.until(ms(6_000), |cluster| cluster.shares()[0] == 24);
}

#[test]
fn a_store_that_forgot_everything_is_filled_again() {
    let mut cluster = two();
    cluster.table = LeaseTable::default();
    let took = cluster.until(ms(9_000), |cluster| {
        cluster.running() == 24 && cluster.starts.values().all(|(count, _)| *count == 2)
    });
    assert!(took < ms(9_000), "{took:?}");
}

#[test]
fn a_lease_of_the_same_name_and_another_nonce_is_waited_out() {
    let mut cluster = Cluster::new();
    let ghost = WorkerId::new(CLUSTER, "a").unwrap();
    let claim = divvy_core::store::Claim {
        key: key("demo", 3),
        nonce: Nonce::new(99),
    };
    let (time, ttl) = (cluster.time(), Duration::from_secs(10));
    cluster.table.acquire(time, &ghost, &claim, ttl);
    cluster.start(Cluster::setup("a", &[("demo", 5)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 4);
    cluster.pass(ms(7_000));
    assert_eq!(cluster.running(), 4);
    let took = cluster.until(ms(4_000), |cluster| cluster.running() == 5);
    assert!(took > ms(2_000), "not before it is over: {took:?}");
}

#[test]
fn a_lost_lease_stops_its_partition_at_the_next_renewal() {
    let mut cluster = two();
    let lease = cluster.places[0].running.keys().next().cloned().unwrap();
    let holder = cluster.table.holder(cluster.time(), &lease).unwrap();
    let claim = divvy_core::store::Claim {
        key: lease.clone(),
        nonce: holder.fence.unwrap().1,
    };
    let worker = cluster.places[0].member.worker().clone();
    let time = cluster.time();
    assert_eq!(
        cluster.table.release(time, &worker, &claim),
        Tenure::Current
    );
    cluster.until(ms(3_100), |cluster| {
        !cluster.places[0].running.contains_key(&lease)
    });
    cluster.until(ms(6_000), |cluster| cluster.running() == 24);
}

#[test]
fn leases_are_renewed_while_a_partition_takes_long_to_stop() {
    let mut cluster = two();
    cluster.places[0].holds_stops = true;
    cluster.hand(0, Event::Stop);
    cluster.pass(ms(15_000));
    assert_eq!(cluster.running(), 24, "nobody took what still stops");
    assert!(cluster.problems(0).is_empty());
    cluster.let_go(0);
    cluster.until(ms(2_000), |cluster| cluster.shares()[1] == 24);
}

/// Settings that let a stop hook run for 40 s before its lease is left to
/// expire.
fn confirmed() -> LeaseSettings {
    LeaseSettings {
        stop_confirm_timeout: Some(ms(40_000)),
        ..settings()
    }
}

#[test]
fn lease_of_an_unconfirmed_stop_expires_by_itself_and_is_not_released() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        cluster.start(Cluster::setup(name, &[("demo", 24)], confirmed()));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    cluster.pass(ms(5_000));
    let mut keys: Vec<_> = cluster.places[0].running.keys().cloned().collect();
    let (hung, before) = (keys.len(), cluster.places[0].given_back_by);
    assert!(hung > 0);
    cluster.places[0].holds_stops = true;
    cluster.hand(0, Event::DrainAsked(true));
    // All are asked to stop, and none returns: leases are renewed for 40 s.
    cluster.until(ms(6_000), |cluster| {
        cluster.places[0].stops_held.len() == hung
    });
    cluster.pass(ms(39_000));
    assert_eq!(cluster.shares()[1], 24 - hung);
    assert!(
        !cluster
            .problems(0)
            .iter()
            .any(|it| it.contains("not confirmed"))
    );
    cluster.pass(ms(2_000));
    let told = cluster.problems(0);
    let told = told.iter().filter(|it| it.contains("stop not confirmed"));
    assert_eq!(told.count(), 1, "{:?}", cluster.problems(0));
    for key in &keys {
        let explained = cluster.places[0].member.explain(key).unwrap();
        assert_eq!(explained.why, Some(Misalignment::StopNotConfirmed));
    }
    let seen = cluster
        .table
        .members(cluster.time(), &LeaseName::new("cluster", CLUSTER).unwrap());
    let told = seen.iter().find(|member| member.name == "a").unwrap();
    let told = WorkerInfo::from_json(told.info.as_deref().unwrap()).unwrap();
    let mut told = told.unconfirmed;
    told.sort();
    keys.sort_by_key(ToString::to_string);
    assert_eq!(
        told,
        keys.iter().map(ToString::to_string).collect::<Vec<_>>()
    );
    // Not given back: each lease lasts until it expires.
    assert_eq!(cluster.shares()[1], 24 - hung);
    assert_eq!(cluster.places[0].given_back_by, before);
    for key in &keys {
        cluster.places[0].running.remove(key);
    }
    let took = cluster.until(ms(12_000), |cluster| cluster.shares()[1] == 24);
    assert!(took > ms(4_000), "before the leases had expired: {took:?}");
    assert_eq!(cluster.places[0].given_back_by, before);
    // The service is back: the worker takes part again.
    cluster.let_go(0);
    cluster.hand(0, Event::DrainAsked(false));
    cluster.until(Duration::from_secs(240), |cluster| {
        cluster.is_settled() && cluster.shares()[0] == hung
    });
}

#[test]
fn lease_of_a_start_hook_that_never_ends_expires_like_that_of_an_unconfirmed_stop() {
    let mut cluster = Cluster::new();
    let settings = confirmed();
    let deadline = settings.start_deadline;
    cluster.start(Cluster::setup("a", &[("demo", 4)], settings.clone()));
    cluster.places[0].holds_starts = true;
    cluster.until(ms(6_000), |cluster| {
        cluster.places[0].starts_held.len() == 4
    });
    let before = cluster.places[0].given_back_by;
    cluster.start(Cluster::setup("b", &[("demo", 4)], settings));
    // It may have to stop what it started: nobody else gets it meanwhile.
    cluster.pass(deadline + ms(39_000));
    assert_eq!(cluster.shares()[1], 0);
    cluster.pass(ms(2_000));
    let problems = cluster.problems(0);
    let told = problems
        .iter()
        .filter(|it| it.contains("stop not confirmed"));
    assert_eq!(told.count(), 1, "{problems:?}");
    assert_eq!(cluster.shares()[1], 0);
    let took = cluster.until(ms(12_000), |cluster| cluster.shares()[1] == 4);
    assert!(took > ms(4_000), "before the leases had expired: {took:?}");
    assert_eq!(cluster.places[0].given_back_by, before);
    // Its service is back, and the worker takes part again.
    cluster.places[0].holds_starts = false;
    for (id, _) in std::mem::take(&mut cluster.places[0].starts_held) {
        cluster.hand(0, Event::HookEnded(id, HookEnd::Failed));
    }
    cluster.until(Duration::from_secs(600), |cluster| {
        cluster.is_settled() && cluster.shares()[0] > 0
    });
}

#[test]
fn start_that_waits_for_its_turn_is_cancelled_when_its_partition_has_to_stop() {
    let mut cluster = Cluster::new();
    let setup = |name| MemberSetup {
        hooks_wait: true,
        ..Cluster::setup(name, &[("demo", 4)], settings())
    };
    cluster.start(setup("a"));
    cluster.places[0].holds_starts = true;
    cluster.until(ms(6_000), |cluster| {
        cluster.places[0].starts_held.len() == 4
    });
    cluster.start(setup("b"));
    cluster.hand(0, Event::DrainAsked(true));
    cluster.until(ms(12_000), |cluster| cluster.shares()[1] == 4);
    // Nothing failed: the application was not asked.
    let reports = &cluster.places[0].reports;
    let failed = reports
        .iter()
        .any(|report| matches!(report, Report::StartFailed(_)));
    assert!(!failed, "{reports:?}");
}

#[test]
fn lease_of_a_stop_that_takes_long_is_kept_unless_the_setting_is_made() {
    let mut cluster = two();
    let hung = cluster.shares()[0];
    cluster.places[0].holds_stops = true;
    cluster.hand(0, Event::DrainAsked(true));
    cluster.pass(ms(300_000));
    assert_eq!(cluster.shares(), [hung, 24 - hung]);
}

#[test]
fn a_partition_that_cannot_be_renewed_is_asked_to_stop_a_tenth_of_the_lease_before_its_end() {
    let mut cluster = two();
    cluster.places[0].is_cut_off = true;
    let ends = |cluster: &Cluster| {
        let held = cluster.places[0].member.held();
        held.filter_map(|held| held.until).min()
    };
    let end = ends(&cluster).unwrap();
    cluster.until(ms(10_000), |cluster| cluster.places[0].running.is_empty());
    let left = end.since(cluster.now);
    let ahead = settings().drain_ahead();
    assert!(
        left >= ahead - ms(10) && left <= ahead,
        "{left:?} before the end"
    );
}

#[test]
fn a_release_that_fails_is_tried_again_before_the_lease_is_over() {
    let mut cluster = two();
    let lease = cluster.places[0].running.keys().next().cloned().unwrap();
    cluster.places[0].holds_stops = true;
    cluster.hand(0, Event::DrainAsked(true));
    cluster.until(ms(3_000), |cluster| {
        !cluster.places[0].stops_held.is_empty()
    });
    // It has stopped when the store is away, and the lease is still its own.
    cluster.is_down = true;
    cluster.places[0].holds_stops = false;
    cluster.let_go(0);
    cluster.pass(ms(3_000));
    assert!(cluster.table.holder(cluster.time(), &lease).is_some());
    cluster.is_down = false;
    cluster.until(ms(3_000), |cluster| {
        let holder = cluster.table.holder(cluster.time(), &lease);
        holder.is_none_or(|holder| holder.worker != "c:a")
    });
}

#[test]
fn recovery_is_reported_when_refused_acquires_are_granted_and_pauses_grow_until_then() {
    let mut cluster = two();
    let told = |cluster: &Cluster, is_it: fn(&Report) -> bool| {
        let reports = cluster.places[1].reports.iter();
        reports.filter(|report| is_it(report)).count()
    };
    let pauses = |report: &Report| matches!(report, Report::Backoff(_));
    let recovered = |report: &Report| *report == Report::Recovered;
    cluster.places[1].refuses_acquires = true;
    cluster.kill(0);
    cluster.until(ms(25_000), |cluster| told(cluster, pauses) > 0);
    cluster.pass(ms(120_000));
    // The life of the store is asked for every five seconds.
    for _ in 0..24 {
        cluster.reconnect("first");
        cluster.pass(ms(5_000));
    }
    assert_eq!(told(&cluster, recovered), 0, "nothing was granted");
    // Pauses of up to 1, 2, 4, … 30 s, 15 on average from then on.
    let count = told(&cluster, pauses);
    assert!((3..=40).contains(&count), "{count} pauses in 240 s");
    // Why is reported once, and again only after the store worked.
    let refusals = |cluster: &Cluster| {
        let problems = cluster.problems(1);
        let refusals = problems
            .iter()
            .filter(|it| it.contains("the store refuses"));
        refusals.count()
    };
    assert_eq!(refusals(&cluster), 1);
    cluster.places[1].refuses_acquires = false;
    cluster.until(ms(40_000), |cluster| cluster.shares()[1] == 24);
    cluster.until(ms(1_000), |cluster| told(cluster, recovered) == 1);
}

#[test]
fn recovery_is_reported_when_nothing_is_left_to_take_that_was_refused() {
    let mut cluster = two();
    let hung = cluster.shares()[0];
    cluster.places[1].refuses_acquires = true;
    cluster.kill(0);
    cluster.pass(ms(60_000));
    assert_eq!(cluster.shares()[1], 24 - hung);
    cluster.start(Cluster::setup("c", &[("demo", 24)], settings()));
    cluster.until(ms(120_000), |cluster| cluster.running() == 24);
    cluster.until(ms(60_000), |cluster| {
        cluster.places[1].reports.contains(&Report::Recovered)
    });
}
