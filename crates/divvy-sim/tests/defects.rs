//! The tests, tested: each planted defect breaks an invariant in time.

use divvy_sim::{DEFECTS, Trial, bound_of, hunt};

#[test]
fn every_planted_defect_is_caught_within_its_bound() {
    let mut missed = Vec::new();
    for &defect in DEFECTS {
        let hunt = hunt(defect);
        match &hunt.caught {
            Some((seed, broken)) => println!("{}: {broken} at seed {seed}", hunt.name),
            None => missed.push((hunt.name, bound_of(defect))),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
    assert!(DEFECTS.len() >= 20);
}

#[test]
fn a_failure_gets_smaller_and_stays_the_same_failure() {
    let caught = DEFECTS.iter().find_map(|&defect| {
        let (seed, broken) = hunt(defect).caught?;
        let trial = Trial::of_seed(seed).with_defect(Some(defect));
        (trial.profile().faults.len() > 3).then_some((trial, broken))
    });
    let (trial, broken) = caught.expect("some defect is caught amid faults");
    let failure = trial.shrunk().expect("it fails again");
    assert_eq!(failure.broken.invariant, broken.invariant);
    assert!(failure.faults < trial.profile().faults.len());
    assert!(failure.tail.last().unwrap().contains("broken: "));
    assert!(
        failure
            .trial
            .command()
            .starts_with("divvy simulate --mode leader --seed ")
    );
}
