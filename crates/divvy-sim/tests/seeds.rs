//! Worlds by their seeds: what must hold in all of them, and that they are
//! what they are.

use divvy_sim::{Campaign, Goal, Mishap, Trial};

/// Seeds of the slice that runs with the other tests.
const SLICE: u64 = 1500;

#[test]
fn no_seed_of_the_slice_breaks_an_invariant_and_every_fault_happens() {
    let campaign = Campaign {
        first: 0,
        goal: Goal::Seeds(SLICE),
        defect: None,
        jobs: 2,
        resume: None,
    };
    let report = campaign.run(|_, _| {}).unwrap();
    for failure in &report.failures {
        println!("{}\n{}", failure.broken, failure.tail.join("\n"));
        println!("to see all of it: {}", failure.trial.command());
    }
    assert_eq!(report.totals.violations, 0);
    assert_eq!(report.totals.seeds, SLICE);
    for &mishap in Mishap::ALL {
        let count = report.totals.faults[mishap.as_str()];
        assert!(count > 0, "{} never happened", mishap.as_str());
    }
}

#[test]
fn the_same_seed_is_the_same_world_line_by_line() {
    for seed in [1, 7, 23] {
        let trial = Trial::of_seed(seed);
        let (first, second) = (trial.run(true), trial.run(true));
        assert!(first.trace.len() > 100, "{} lines", first.trace.len());
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert_eq!(first.tally.events, trial.run(false).tally.events);
    }
}

#[test]
fn a_run_that_was_interrupted_goes_on_where_it_was() {
    let directory = std::env::temp_dir().join(format!("divvy-sim-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("run.json");
    let campaign = |seeds, resume| Campaign {
        first: 100,
        goal: Goal::Seeds(seeds),
        defect: None,
        jobs: 2,
        resume,
    };
    campaign(8, Some(file.clone())).run(|_, _| {}).unwrap();
    let resumed = campaign(20, Some(file)).run(|_, _| {}).unwrap();
    let whole = campaign(20, None).run(|_, _| {}).unwrap();
    assert_eq!(resumed.totals, whole.totals);
    std::fs::remove_dir_all(&directory).unwrap();
}
