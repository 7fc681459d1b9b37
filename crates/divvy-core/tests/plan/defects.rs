//! The checks are worth something only if they catch broken planners. Each planner here has one planted defect.

use std::cell::Cell;

use crate::check::{check_any, check_band, check_counts, check_fewest};
use divvy_core::plan::{
    Band, Cause, GONE, Move, NONE, Plan, PlanError, Problem, Slot, Weights, balanced, banded,
};

type Planned = Result<Plan, PlanError>;

/// A plan with these owners whose account is in order; only the owners are wrong.
fn forge(problem: &Problem<'_>, mut plan: Plan, owners: Vec<u32>) -> Plan {
    plan.loads.fill(0);
    plan.counts.fill(0);
    for (partition, &owner) in owners.iter().enumerate() {
        plan.loads[owner as usize] += crate::check::weight(problem, partition);
        plan.counts[owner as usize] += 1;
    }
    let change = |(partition, (&from, &to)): (usize, (&u32, &u32))| Move {
        partition: partition as u32,
        from,
        to,
        cause: match from {
            NONE => Cause::New,
            GONE => Cause::WorkerGone,
            _ => Cause::Over,
        },
        rejected: None,
    };
    let pairs = problem.previous.iter().zip(&owners).enumerate();
    plan.moves = pairs
        .filter(|(_, (from, to))| from != to)
        .map(change)
        .collect();
    let moved = || plan.moves.iter().filter(|change| change.from != NONE);
    plan.certificate.moves = moved().count() as u32;
    plan.certificate.moved_weight = moved()
        .map(|change| crate::check::weight(problem, change.partition as usize))
        .sum();
    let mean = plan.loads.iter().sum::<u64>() as f64 / plan.loads.len() as f64;
    let levels = || plan.loads.iter().map(|&load| load as f64 / mean);
    plan.certificate.max_over_mean = levels().fold(0.0, f64::max);
    plan.certificate.min_over_mean = levels().fold(f64::INFINITY, f64::min);
    plan.owners = owners;
    plan
}

/// Twelve partitions, four workers, the last of which is new.
const PREVIOUS: [u32; 12] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];

fn slots() -> Vec<Slot> {
    vec![Slot::new(1.0); 4]
}

fn problem(slots: &[Slot]) -> Problem<'_> {
    Problem {
        weights: Weights::Even,
        slots,
        previous: &PREVIOUS,
    }
}

/// Everything that is promised of a plan by count.
fn verdict(slots: &[Slot], planner: impl Fn(&Problem<'_>) -> Planned) -> String {
    let problem = problem(slots);
    let checked = check_any(&problem, planner).and_then(|plan| {
        check_counts(&problem, &plan)?;
        if slots.iter().all(|slot| *slot == Slot::new(1.0)) {
            check_fewest(&problem, &plan)?;
        }
        Ok(())
    });
    checked.err().unwrap_or_default()
}

#[test]
fn the_real_planner_passes() {
    assert_eq!(verdict(&slots(), |problem| balanced(problem, |_| 3)), "");
}

#[test]
fn one_move_too_many_is_caught() {
    let broken = |problem: &Problem<'_>| {
        let plan = balanced(problem, |_| 3)?;
        if plan.moves.is_empty() {
            return Ok(plan);
        }
        let mut owners = plan.owners.clone();
        owners.swap(0, 4);
        Ok(forge(problem, plan, owners))
    };
    assert_eq!(verdict(&slots(), broken), "fewest: 3 moves suffice");
}

#[test]
fn a_partition_for_a_worker_of_weight_zero_is_caught() {
    let mut slots = slots();
    slots[1].weight = 0.0;
    let broken = |problem: &Problem<'_>| {
        let plan = balanced(problem, |_| 3)?;
        let mut owners = plan.owners.clone();
        owners[4] = 1;
        Ok(forge(problem, plan, owners))
    };
    assert_eq!(verdict(&slots, broken), "total: partition 4 is given to 1");
}

#[test]
fn a_forgotten_cap_is_caught() {
    let mut capped = slots();
    capped[0].max_partitions = Some(2);
    let uncapped = slots();
    let broken = |problem: &Problem<'_>| {
        balanced(
            &Problem {
                slots: &uncapped,
                ..*problem
            },
            |_| 3,
        )
    };
    assert_eq!(verdict(&capped, broken), "caps: worker 0 owns more than 2");
}

#[test]
fn moving_again_from_a_balanced_state_is_caught() {
    let broken = |problem: &Problem<'_>| {
        let plan = balanced(problem, |_| 3)?;
        let turned: Vec<u32> = plan.owners.iter().map(|&owner| (owner + 1) % 4).collect();
        Ok(forge(problem, plan, turned))
    };
    assert!(verdict(&slots(), broken).starts_with("idempotent"));
}

#[test]
fn a_planner_that_depends_on_the_past_is_caught() {
    let calls = Cell::new(0);
    let broken = |problem: &Problem<'_>| {
        calls.set(calls.get() + 1);
        let plan = balanced(problem, |_| 3)?;
        if calls.get() % 2 == 1 {
            return Ok(plan);
        }
        // Just as good: another partition of the same worker moves.
        let mut owners = plan.owners.clone();
        owners.swap(0, 3);
        Ok(forge(problem, plan, owners))
    };
    assert!(verdict(&slots(), broken).starts_with("deterministic"));
}

#[test]
fn ignoring_the_lower_side_is_caught() {
    let slots = slots();
    let broken = |problem: &Problem<'_>| {
        banded(
            problem,
            &Band {
                width: 2.0,
                ..Band::default()
            },
            |_| 3,
        )
    };
    let plan = check_any(&problem(&slots), broken).expect("all but the band is in order");
    assert_eq!(
        check_band(&problem(&slots), &plan, 0.3),
        Err("band: highest level 1.3333333333333333".into())
    );
    let inside = Problem {
        previous: &[0, 0, 0, 1, 1, 1, 2, 2, 2, 3],
        ..problem(&slots)
    };
    let plan = check_any(&inside, broken).expect("all but the band is in order");
    assert_eq!(
        check_band(&inside, &plan, 0.3),
        Err("band: lowest level 0.4".into())
    );
}

#[test]
fn a_false_account_is_caught() {
    let lie = |tell: fn(&mut Plan)| {
        let broken = move |problem: &Problem<'_>| {
            balanced(problem, |_| 3).map(|mut plan| {
                tell(&mut plan);
                plan
            })
        };
        verdict(&slots(), broken)
    };
    assert_eq!(
        lie(|plan| plan.certificate.moves -= 1),
        "certificate: 3 moves"
    );
    assert_eq!(
        lie(|plan| plan.certificate.moved_weight = 0),
        "certificate: weight 3"
    );
    assert!(lie(|plan| plan.certificate.lower_bound = 4).starts_with("bound"));
    assert_eq!(
        lie(|plan| plan.certificate.min_over_mean = 0.5),
        "certificate: lowest level 1"
    );
    assert_eq!(lie(|plan| plan.moves.truncate(2)), "moves: one is missing");
    assert!(lie(|plan| plan.moves[0].cause = Cause::New).starts_with("moves"));
}

#[test]
fn uneven_counts_are_caught() {
    let broken = |problem: &Problem<'_>| {
        let mut plan = balanced(problem, |_| 3)?;
        plan.certificate.lower_bound = 0;
        Ok(forge(problem, plan, problem.previous.to_vec()))
    };
    assert_eq!(
        verdict(&slots(), broken),
        "counts: worker 0 owns 4, not 3 to 3"
    );
}
