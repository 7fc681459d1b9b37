//! Seeds of the simulator, watched: the same worlds, event for event.

use std::time::Duration;

use divvy_playground::Engine;
use divvy_sim::{Defect, Mode, Trial};
use serde_json::json;

/// A line without what is cut off of long ones.
fn start_of(line: &str) -> String {
    line.chars().take(400).collect()
}

/// Lets a seed run its course; gives the end of its trace.
fn replayed(trial: &Trial) -> (Engine, Vec<String>) {
    let mut engine = Engine::replay(trial, 0);
    for _ in 0..10_000 {
        engine.pass(Duration::from_secs(1));
        let snapshot = engine.snapshot();
        if !snapshot.clock.running {
            break;
        }
        let _ = engine.news();
    }
    let trace = engine.trace();
    (engine, trace)
}

#[test]
fn a_seed_that_is_watched_is_the_seed_that_is_run() {
    for mode in [Mode::Leader, Mode::Lease] {
        for seed in 0..12 {
            let trial = Trial::of_seed(mode, seed);
            let run = trial.run(true);
            assert_eq!(run.broken, None);
            let (engine, trace) = replayed(&trial);
            let snapshot = engine.snapshot();
            assert_eq!(snapshot.source, "replayed");
            assert!(snapshot.invariants.violations.is_empty());
            let tail = |lines: &[String]| -> Vec<String> {
                let last = lines.len().saturating_sub(2000);
                lines[last..].iter().map(|line| start_of(line)).collect()
            };
            assert!(tail(&run.trace) == tail(&trace), "{mode} seed {seed}");
        }
    }
}

#[test]
fn a_seed_that_fails_fails_before_the_eyes_of_who_watches() {
    let defect = Defect::named(Mode::Leader, "grant-without-ack").expect("it is known");
    let failing = (0..400)
        .map(|seed| Trial::of_seed(Mode::Leader, seed).with_defect(Some(defect)))
        .find(|trial| trial.run(false).broken.is_some())
        .expect("the mistake is caught");
    let broken = failing.run(false).broken.expect("it is broken");
    let (mut engine, trace) = replayed(&failing);
    let _ = engine.news();
    let snapshot = engine.snapshot();
    assert_eq!(
        snapshot.invariants.violations[0].invariant,
        broken.invariant
    );
    assert_eq!(snapshot.invariants.violations[0].seen, broken.seen);
    assert!(!snapshot.clock.running);
    assert!(!trace.is_empty());
    let refused = engine.request(json!({"action": "kill", "worker": 0}));
    assert!(refused.is_err(), "a replay runs its course");
    let done = engine.request(json!({"action": "reset", "seed": 3, "workers": 3}));
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(engine.snapshot().source, "simulated");
}

#[test]
fn what_an_invariant_has_seen_is_told_by_the_names_that_are_shown() {
    let defect = Defect::named(Mode::Leader, "no-self-fence").expect("it is known");
    let is_member = |word: &str| {
        let number = word.trim_end_matches([',', ':']).strip_prefix('m');
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    };
    let failing = (0..400)
        .map(|seed| Trial::of_seed(Mode::Leader, seed).with_defect(Some(defect)))
        .find(|trial| {
            let broken = trial.run(false).broken;
            broken.is_some_and(|broken| broken.seen.split(' ').any(is_member))
        })
        .expect("the mistake is caught");
    let (mut engine, _) = replayed(&failing);
    let _ = engine.news();
    let snapshot = engine.snapshot();
    let seen = &snapshot.invariants.violations[0].seen;
    assert!(!seen.split(' ').any(is_member), "{seen}");
    assert!(seen.contains("host-"), "{seen}");
}
