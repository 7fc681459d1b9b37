//! Names and their sessions.

use divvy_core::leader::HookEnd;
use divvy_core::lease::{Action, Ending, Event, LeaseSettings, Member, Operation, Reply, Report};
use divvy_core::store::{Incarnation, StoreErrorKind};

use crate::cluster::{Cluster, key, ms, settings};

#[test]
fn a_second_process_with_the_same_name_is_refused() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("demo", 4)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 4);
    let mut twin = Cluster::setup("a", &[("demo", 4)], settings());
    twin.seed = 99;
    let twin = cluster.start(twin);
    cluster.until(ms(21_000), |cluster| cluster.places[twin].ended.is_some());
    assert_eq!(cluster.places[twin].ended, Some(Ending::NameTaken));
    let problems = cluster.problems(twin);
    assert!(problems.last().unwrap().contains("another process is c:a"));
    assert_eq!(cluster.shares()[0], 4, "the first one is not disturbed");
}

#[test]
fn a_process_that_comes_back_after_a_crash_gets_its_name_when_the_session_is_over() {
    let mut cluster = Cluster::new();
    let first = cluster.start(Cluster::setup("a", &[("demo", 4)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 4);
    cluster.pass(ms(1_000));
    cluster.kill(first);
    let mut again = Cluster::setup("a", &[("demo", 4)], settings());
    again.seed = 99;
    let again = cluster.start(again);
    cluster.until(ms(12_000), |cluster| cluster.running() == 4);
    assert!(cluster.places[again].ended.is_none());
    assert!(cluster.problems(again)[0].contains("waiting"));
}

#[test]
fn a_stop_that_takes_too_long_ends_late_and_leaves_its_leases_to_run_out() {
    let mut cluster = Cluster::new();
    let hasty = LeaseSettings {
        shutdown_timeout: ms(3_000),
        ..settings()
    };
    cluster.start(Cluster::setup("a", &[("demo", 4)], hasty));
    cluster.until(ms(2_000), |cluster| cluster.running() == 4);
    cluster.places[0].holds_stops = true;
    cluster.hand(0, Event::Stop);
    cluster.until(ms(3_100), |cluster| cluster.places[0].ended.is_some());
    assert_eq!(cluster.places[0].ended, Some(Ending::Late));
}

#[test]
fn leases_that_are_not_released_on_shutdown_wait_for_whoever_comes_back() {
    let mut cluster = Cluster::new();
    for name in ["a", "b"] {
        let keeping = LeaseSettings {
            release_on_shutdown: false,
            ..settings()
        };
        cluster.start(Cluster::setup(name, &[("demo", 24)], keeping));
    }
    cluster.until(ms(2_000), |cluster| cluster.running() == 24);
    let had = cluster.shares();
    cluster.hand(0, Event::Stop);
    cluster.until(ms(1_000), |cluster| cluster.places[0].ended.is_some());
    cluster.pass(ms(4_000));
    assert_eq!(cluster.shares()[1], had[1], "nothing moved");
    cluster.until(ms(8_000), |cluster| cluster.running() == 24);
}

#[test]
fn leases_that_cannot_be_given_back_at_the_end_are_told_of_once() {
    let mut cluster = Cluster::new();
    let place = cluster.start(Cluster::setup("a", &[("demo", 4)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 4);
    cluster.is_down = true;
    cluster.hand(place, Event::Stop);
    cluster.until(ms(60_000), |cluster| cluster.places[place].ended.is_some());
    let problems = cluster.problems(place);
    let told = problems
        .iter()
        .filter(|it| it.contains("could not be given back: 4"));
    assert_eq!(told.count(), 1, "{problems:?}");
}

#[test]
fn a_member_that_stops_before_it_began_ends_at_once() {
    let mut cluster = Cluster::new();
    let setup = Cluster::setup("a", &[("demo", 4)], settings());
    let mut member = Member::new(setup.clone(), cluster.now);
    member.handle(cluster.now, Event::Stop);
    assert!(member.is_over());
    cluster.start(setup);
    cluster.hand(0, Event::Stop);
    cluster.until(ms(100), |cluster| cluster.places[0].ended.is_some());
}

#[test]
fn two_thousand_partitions_are_given_back_by_a_few_operations() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("demo", 2048)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 2048);
    cluster.places[0].given_back_by = 0;
    cluster.hand(0, Event::Stop);
    let took = cluster.until(ms(100), |cluster| cluster.places[0].ended.is_some());
    assert_eq!(cluster.places[0].ended, Some(Ending::InOrder));
    // Its own release and mark for each would be 4,096.
    let operations = cluster.places[0].given_back_by;
    assert!(operations <= 4, "{operations} within {took:?}");
}

#[test]
fn what_has_stopped_does_not_wait_for_what_does_not_stop() {
    let mut cluster = Cluster::new();
    cluster.start(Cluster::setup("a", &[("demo", 8)], settings()));
    cluster.until(ms(2_000), |cluster| cluster.running() == 8);
    cluster.pass(ms(10));
    cluster.places[0].holds_stops = true;
    cluster.hand(0, Event::Stop);
    let held = cluster.places[0].stops_held.pop();
    let (stuck, _) = held.expect("every stop hook is held");
    cluster.let_go(0);
    let is_free = |cluster: &Cluster, number| {
        let holder = cluster.table.holder(cluster.time(), &key("demo", number));
        holder.is_none()
    };
    let took = cluster.until(ms(10), |cluster| {
        (0..8).filter(|number| is_free(cluster, *number)).count() == 7
    });
    assert!(took <= ms(5), "{took:?}");
    cluster.hand(0, Event::HookEnded(stuck, HookEnd::Done));
    cluster.places[0].running.clear();
    cluster.until(ms(10), |cluster| cluster.places[0].ended.is_some());
}

// Only a stranger throws a session away.
#[cfg(feature = "simulation")]
#[test]
fn whoever_lost_its_name_ends_although_a_hook_runs_on() {
    let mut cluster = Cluster::new();
    let hasty = LeaseSettings {
        shutdown_timeout: ms(3_000),
        ..settings()
    };
    cluster.start(Cluster::setup("a", &[("demo", 4)], hasty));
    cluster.until(ms(2_000), |cluster| cluster.running() == 4);
    cluster.pass(ms(10));
    cluster.places[0].holds_stops = true;
    let worker = cluster.places[0].member.worker().clone();
    assert!(cluster.table.drop_session(&worker));
    let mut twin = Cluster::setup("a", &[("other", 1)], settings());
    twin.seed = 99;
    let twin = cluster.start(twin);
    cluster.until(ms(40_000), |cluster| cluster.places[0].ended.is_some());
    assert_eq!(cluster.places[0].ended, Some(Ending::NameTaken));
    assert_eq!(cluster.places[0].running.len(), 4, "nothing has stopped");
    assert!(cluster.places[twin].ended.is_none());
}

/// A request for the name may be carried out after nobody waits for its answer
/// any more.
#[test]
fn a_worker_that_finds_its_own_late_session_has_its_name() {
    let cluster = Cluster::new();
    let mut table = cluster.table.clone();
    let mut now = cluster.now;
    let mut member = Member::new(Cluster::setup("a", &[("demo", 4)], settings()), now);
    let worker = member.worker().clone();
    member.handle(now, Event::Connected(Incarnation::new("first")));
    member.handle(now, Event::Start);
    let mut asked = 0;
    let mut has_joined = false;
    for _ in 0..1_000 {
        while let Some(action) = member.next_action() {
            has_joined |= matches!(action, Action::Report(Report::Joined));
            let Action::Store { id, operation, .. } = action else {
                assert!(
                    !matches!(action, Action::Report(Report::Problem(_))),
                    "{action:?}"
                );
                continue;
            };
            let reply = match operation {
                Operation::OpenSession { session, ttl } => {
                    asked += 1;
                    let start = table.open_session(cluster.time(), &worker, session, ttl);
                    match asked {
                        1 => Reply::Failed(StoreErrorKind::Unknown, "no answer".into()),
                        _ => Reply::Session(start),
                    }
                }
                _ => Reply::Failed(StoreErrorKind::Unknown, "no answer".into()),
            };
            member.handle(now, Event::Reply(id, reply));
        }
        if has_joined {
            break;
        }
        now = member.next_wake().expect("it asks again");
        member.wake(now);
    }
    assert_eq!((has_joined, asked), (true, 2));
}

// Only a stranger throws a session away.
#[cfg(feature = "simulation")]
#[test]
fn a_long_session_that_ends_a_little_late_is_not_taken_for_renewed() {
    let mut cluster = Cluster::new();
    let worker = divvy_core::store::WorkerId::new(crate::cluster::CLUSTER, "a").unwrap();
    let (session, time) = (divvy_core::store::Nonce::new(9), cluster.time());
    let long = std::time::Duration::from_secs(100);
    cluster.table.open_session(time, &worker, session, long);
    let place = cluster.start(Cluster::setup("a", &[("demo", 4)], settings()));
    cluster.pass(ms(98_000));
    // The clock of the store is slow: for it, two seconds less have passed.
    let time = cluster.time();
    assert!(cluster.table.drop_session(&worker));
    cluster
        .table
        .open_session(time, &worker, session, ms(4_000));
    cluster.until(ms(8_000), |cluster| cluster.running() == 4);
    assert!(cluster.places[place].ended.is_none());
}
