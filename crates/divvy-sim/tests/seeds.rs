//! Worlds by their seeds: what must hold in all of them, and that they are
//! what they are.

use divvy_sim::{Campaign, Goal, Mishap, Mode, Totals, Trial};

/// Seeds of the slice that runs with the other tests.
const SLICE: u64 = 1500;

#[test]
fn no_seed_of_leader_mode_breaks_an_invariant_and_every_fault_happens() {
    slice_holds(Mode::Leader);
}

#[test]
fn no_seed_of_lease_mode_breaks_an_invariant_and_every_fault_happens() {
    slice_holds(Mode::Lease);
}

#[track_caller]
fn slice_holds(mode: Mode) {
    let campaign = Campaign {
        mode,
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
    for mishap in Mishap::all_of(mode) {
        let count = report.totals.faults[mishap.as_str()];
        assert!(count > 0, "{} never happened", mishap.as_str());
    }
}

#[test]
fn the_same_seed_is_the_same_world_line_by_line() {
    let modes = [Mode::Leader, Mode::Lease];
    for (mode, seed) in modes
        .iter()
        .flat_map(|&mode| [1, 7, 23].map(|seed| (mode, seed)))
    {
        let trial = Trial::of_seed(mode, seed);
        let (first, second) = (trial.run(true), trial.run(true));
        assert!(first.trace.len() > 100, "{} lines", first.trace.len());
        assert_eq!(first.trace, second.trace, "{mode}, seed {seed}");
        assert_eq!(first.tally.events, trial.run(false).tally.events);
    }
}

fn hours(hours: f64, first: u64) -> Campaign {
    Campaign {
        mode: Mode::Leader,
        first,
        goal: Goal::ClusterHours(hours),
        defect: None,
        jobs: 2,
        resume: None,
    }
}

#[test]
fn a_goal_of_hours_is_reached_and_not_passed_by_far() {
    let totals = hours(0.5, 0).run(|_, _| {}).unwrap().totals;
    let lived = totals.cluster_hours();
    assert!(
        (0.5..3.0).contains(&lived),
        "{lived} h in {} seeds",
        totals.seeds
    );
}

#[test]
fn after_the_last_seed_comes_the_first() {
    let campaign = Campaign {
        goal: Goal::Seeds(3),
        ..hours(1.0, u64::MAX)
    };
    let totals = campaign.run(|_, _| {}).unwrap().totals;
    let mut apart = Totals::default();
    for seed in [u64::MAX, 0, 1] {
        apart.add(&Trial::of_seed(Mode::Leader, seed).run(false));
    }
    assert_eq!(totals, apart);
}

#[test]
fn a_file_to_go_on_from_is_refused_if_nobody_wrote_it() {
    let directory = std::env::temp_dir().join(format!("divvy-sim-bad-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("run.json");
    let other = r#"{"format": 1, "mode": "lease", "next_seed": 1, "totals": {"seeds": 1,
        "cluster_ms": 1, "events": 1, "grants": 1, "revocations": 1, "effects": 1,
        "violations": 0, "faults": {}}}"#;
    for (text, told) in [
        ("garbage", "is not a file"),
        ("{}", "is not a file"),
        (other, "lease"),
    ] {
        std::fs::write(&file, text).unwrap();
        let resume = Some(file.clone());
        let run = Campaign {
            resume,
            ..hours(1.0, 0)
        }
        .run(|_, _| {});
        let error = run.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            text,
            "it is left alone"
        );
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_run_that_was_interrupted_goes_on_where_it_was() {
    let directory = std::env::temp_dir().join(format!("divvy-sim-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("run.json");
    let campaign = |seeds, resume| Campaign {
        mode: Mode::Lease,
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
