//! Equal partitions, exact shares: plans as multiples of a copy of the previous owners.

use divvy_core::plan::{NONE, Plan, Problem, Slot, Weights, balanced};

use super::{Figure, Unit, preferred};
use crate::clock::{self, timed};

/// How many copies a plan may cost.
const COPIES: f64 = 10.0;

/// Events on interned input.
pub(super) fn measure(rounds: usize, quick: bool) -> Vec<Figure> {
    let (partitions, workers) = if quick {
        (10_000, 100)
    } else {
        (1_000_000, 1000)
    };
    let slots = vec![Slot::new(1.0); workers];
    let table = preferred(partitions, workers);
    let plan = |previous: &[u32], slots: &[Slot]| -> Plan {
        let problem = Problem {
            weights: Weights::Even,
            slots,
            previous,
        };
        balanced(&problem, |partition| table[partition as usize]).expect("a plan")
    };
    let new = vec![NONE; partitions];
    let owners = plan(&new, &slots).owners;
    let ten = workers - 10;
    let mut ten_less = slots.clone();
    ten_less[ten..].fill(Slot::new(0.0));
    let before = plan(&owners, &ten_less).owners;
    let mut one_gone = slots.clone();
    one_gone[17].weight = 0.0;
    let unowned = |&owner: &u32| if owner as usize >= ten { NONE } else { owner };
    let fewer: Vec<u32> = owners.iter().map(unowned).collect();
    let cases: [(&str, &[u32], &[Slot]); 6] = [
        ("cold start", &new, &slots),
        ("nothing changed", &owners, &slots),
        ("one worker lost", &owners, &one_gone),
        ("ten workers are new", &before, &slots),
        ("one in 100 is new", &fewer, &slots),
        ("previous by hash", &table, &slots),
    ];
    let figure = |(case, previous, slots): (&'static str, &[u32], &[Slot])| {
        eprintln!("balanced {partitions}x{workers}, {case}");
        // More rounds than for a time: with a few, the ratio of two medians differs much from run to run.
        let (plan_ns, copy_ns) = clock::duel(
            4 * rounds,
            || timed(|| plan(previous, slots)),
            || timed(|| previous.to_vec()),
        );
        Figure {
            job: format!("{partitions}x{workers}, balanced"),
            case,
            way: "dense, copies of the owners",
            unit: Unit::Ratio,
            value: plan_ns / copy_ns,
            // A cold start has no previous owners to keep.
            at_most: (case != "cold start").then_some(COPIES),
            moves: Some(plan(previous, slots).certificate.moves),
        }
    };
    cases.into_iter().map(figure).collect()
}
