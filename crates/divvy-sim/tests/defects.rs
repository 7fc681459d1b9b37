//! The tests, tested: each planted defect breaks an invariant in time.

use divvy_sim::{Defect, Mode, Trial, hunt};

#[track_caller]
fn all_are_caught(mode: Mode, least: usize) {
    let defects = Defect::all(mode);
    let mut missed = Vec::new();
    for &defect in &defects {
        let hunt = hunt(defect);
        match &hunt.caught {
            Some((seed, broken)) => println!("{}: {broken} at seed {seed}", hunt.name),
            None => missed.push((hunt.name, hunt.bound)),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
    assert!(defects.len() >= least);
}

#[test]
fn every_planted_defect_of_leader_mode_is_caught_within_its_bound() {
    all_are_caught(Mode::Leader, 20);
}

#[test]
fn every_planted_defect_of_lease_mode_is_caught_within_its_bound() {
    all_are_caught(Mode::Lease, 12);
}

#[track_caller]
fn a_failure_gets_smaller(mode: Mode) {
    let caught = Defect::all(mode).into_iter().find_map(|defect| {
        let (seed, broken) = hunt(defect).caught?;
        let trial = Trial::of_seed(mode, seed).with_defect(Some(defect));
        (trial.faults() > 3).then_some((trial, broken))
    });
    let (trial, broken) = caught.expect("some defect is caught amid faults");
    let failure = trial.shrunk().expect("it fails again");
    assert_eq!(failure.broken.invariant, broken.invariant);
    assert!(failure.faults < trial.faults());
    assert!(failure.tail.last().unwrap().contains("broken: "));
    let command = format!("divvy simulate --mode {mode} --seed ");
    assert!(failure.trial.command().starts_with(&command));
}

#[test]
fn a_failure_gets_smaller_and_stays_the_same_failure() {
    a_failure_gets_smaller(Mode::Leader);
    a_failure_gets_smaller(Mode::Lease);
}
