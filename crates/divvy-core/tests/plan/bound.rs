//! Planning by weight against every assignment there is, on problems small enough to try them all.

use crate::check::{every_assignment, moves, random_previous, random_slots};
use divvy_core::plan::{Band, Plan, Problem, Slot, Weights, banded, zoned_banded};

fn anyone(slots: usize) -> impl Fn(u32) -> u32 {
    move |partition| partition.wrapping_mul(2_654_435_761) % (slots as u32 + 1)
}

/// How well the planner did.
#[derive(Debug, Default)]
struct Score {
    /// Problems with an assignment in the band, and those of them where the planner missed it.
    feasible: u32,
    missed: u32,
    /// Fewest moves, the planner's moves and its lower bounds, added up where it did not miss.
    fewest: u32,
    moves: u32,
    bounds: u32,
}

impl Score {
    fn add(&mut self, problem: &Problem<'_>, plan: &Plan, is_inside: impl Fn(&[u64]) -> bool) {
        let certificate = &plan.certificate;
        let mut fewest = u32::MAX;
        every_assignment(problem, |owners| {
            let mut loads = vec![0; problem.slots.len()];
            let mut counts = vec![0; problem.slots.len()];
            for (partition, &owner) in owners.iter().enumerate() {
                loads[owner as usize] += crate::check::weight(problem, partition);
                counts[owner as usize] += 1;
            }
            let fits = counts
                .iter()
                .zip(problem.slots)
                .all(|(&count, slot)| count <= crate::check::cap(slot));
            if fits && is_inside(&loads) {
                fewest = fewest.min(moves(problem, owners));
            }
        });
        let is_in_band = certificate.outside == 0 && certificate.zones_outside == 0;
        if fewest == u32::MAX {
            assert!(!is_in_band, "{problem:?}");
            return;
        }
        self.feasible += 1;
        if !is_in_band {
            self.missed += 1;
            return;
        }
        assert!(certificate.lower_bound <= fewest, "{problem:?}");
        assert!(certificate.moves >= fewest, "{problem:?}");
        self.fewest += fewest;
        self.moves += certificate.moves;
        self.bounds += certificate.lower_bound;
    }
}

/// Inside ± `width`, with as much tolerance as floats need.
fn is_level(load: u64, share: f64, width: f64) -> bool {
    (load as f64 / share - 1.0).abs() <= width + 1e-12
}

#[test]
fn lower_bound_is_below_the_best_of_all_assignments_in_the_band() {
    let mut rng = fastrand::Rng::with_seed(12);
    let mut scores = [Score::default(), Score::default(), Score::default()];
    for round in 0..3_000 {
        let kind = round % 3;
        let mut slots = vec![Slot::new(1.0); rng.usize(2..=4)];
        if kind == 1 {
            slots = random_slots(&mut rng, 4);
        }
        slots.iter_mut().for_each(|slot| slot.zone = rng.u32(0..2));
        let partitions = rng.usize(2..=7);
        let previous = random_previous(&mut rng, slots.len(), partitions);
        let weights: Vec<u64> = (0..partitions).map(|_| rng.u64(1..=20)).collect();
        let problem = Problem {
            weights: Weights::Each(&weights),
            slots: &slots,
            previous: &previous,
        };
        let band = Band {
            extreme: 100.0,
            ..Band::default()
        };
        let planner = if kind == 2 { zoned_banded } else { banded };
        let plan = planner(&problem, &band, anyone(slots.len())).unwrap();
        if plan.certificate.giants > 0 {
            continue;
        }
        let capacity = |slot: &Slot| if slot.is_eligible() { slot.weight } else { 0.0 };
        let mean = weights.iter().sum::<u64>() as f64 / slots.iter().map(capacity).sum::<f64>();
        let zone_inside = |loads: &[u64], zone: u32| {
            let members = || {
                slots
                    .iter()
                    .zip(loads)
                    .filter(move |(slot, _)| slot.zone == zone)
            };
            let share = mean * members().map(|(slot, _)| capacity(slot)).sum::<f64>();
            share == 0.0 || is_level(members().map(|(_, load)| load).sum(), share, 0.1)
        };
        scores[kind].add(&problem, &plan, |loads| {
            let eligible = || {
                slots
                    .iter()
                    .zip(loads)
                    .filter(|(slot, _)| slot.is_eligible())
            };
            eligible().all(|(slot, &load)| is_level(load, mean * slot.weight, 0.3))
                && (kind < 2 || (zone_inside(loads, 0) && zone_inside(loads, 1)))
        });
    }
    for (score, name) in scores
        .iter()
        .zip(["equal workers", "weights and caps", "two zones"])
    {
        println!("{name}: {score:?}");
        assert!(score.missed * 5 <= score.feasible, "{name}: {score:?}");
    }
}
