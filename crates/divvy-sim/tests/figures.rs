//! What the machine promises in the time of the world.

use std::time::Duration;

use divvy_sim::figures::lease::{Going, cold_start, handed_on};
use divvy_sim::figures::{self, Victim, failover, peace, planned_move, rolling_restart};

const WORLDS: u64 = 100;

#[test]
fn partitions_of_a_crashed_worker_run_elsewhere_within_900_ms() {
    let spread = failover(Victim::Worker, WORLDS).unwrap();
    let p99 = spread.quantile(0.99);
    assert!(p99 < Duration::from_millis(900), "{p99:?}");
}

#[test]
fn partitions_of_a_crashed_leader_run_elsewhere_within_900_ms() {
    let spread = failover(Victim::Leader, WORLDS).unwrap();
    let p99 = spread.quantile(0.99);
    assert!(p99 < Duration::from_millis(900), "{p99:?}");
}

#[test]
fn a_planned_move_takes_less_than_four_round_trips_and_the_hook() {
    let planned = planned_move(WORLDS).unwrap();
    assert_eq!(
        planned.took.count() as u64,
        WORLDS,
        "all worlds move something"
    );
    let p99 = planned.took.quantile(0.99);
    assert!(p99 < planned.round_trip * 4 + planned.hook, "{p99:?}");
}

#[test]
fn a_rolling_restart_of_a_hundred_workers_moves_nothing() {
    let rolled = rolling_restart(100, 200).unwrap();
    assert_eq!((rolled.moved, rolled.idle), (0, 0));
}

#[test]
fn nothing_moves_in_a_day_of_peace() {
    let peace = peace(Duration::from_secs(24 * 3600)).unwrap();
    assert_eq!(peace.moves, 0);
}

#[test]
fn leases_of_a_killed_worker_run_elsewhere_within_a_lease_and_a_second() {
    let spread = handed_on(Going::Killed, WORLDS).unwrap();
    let most = spread.quantile(1.0);
    assert!(most < Duration::from_secs(11), "{most:?}");
}

#[test]
fn leases_of_a_worker_that_stops_run_elsewhere_within_two_seconds() {
    let spread = handed_on(Going::Asked, WORLDS).unwrap();
    let most = spread.quantile(1.0);
    assert!(most < Duration::from_secs(2), "{most:?}");
}

#[test]
fn all_leases_are_taken_within_two_seconds_of_a_cold_start() {
    for (members, partitions, worlds) in [(3, 24, WORLDS), (1, 2048, 3), (10, 2048, 3)] {
        let most = cold_start(members, partitions, worlds)
            .unwrap()
            .quantile(1.0);
        assert!(most < Duration::from_secs(2), "{members}: {most:?}");
    }
}

#[test]
fn no_lease_moves_in_a_day_of_peace() {
    let peace = figures::lease::peace(Duration::from_secs(24 * 3600)).unwrap();
    assert_eq!(peace.moves, 0);
}
