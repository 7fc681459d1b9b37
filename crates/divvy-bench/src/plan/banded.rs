//! Weighted partitions, every worker inside a band.

use divvy_core::plan::{Band, GONE, NONE, Plan, Problem, Slot, Weights, banded};
use divvy_core::{Assignment, Partitions, Proposal, Strategy, WeightedConsistentHash, Workers};

use super::{Figure, Unit, preferred};
use crate::clock::{self, timed};
use crate::scene;

const MILLISECOND: f64 = 1e6;

/// Weights, and how long a plan may take.
struct Job {
    name: String,
    workers: usize,
    weights: Vec<u64>,
    at_most: f64,
}

/// Cold starts and events, for shapes of weights.
pub(super) fn measure(rounds: usize, quick: bool) -> Vec<Figure> {
    let mut jobs = jobs();
    if quick {
        jobs.truncate(1);
    }
    jobs.iter()
        .flat_map(|job| {
            eprintln!("{}", job.name);
            let mut figures = job.dense(rounds);
            figures.extend(job.named(rounds));
            figures
        })
        .collect()
}

fn jobs() -> Vec<Job> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut reference = vec![100; 2850];
    reference.extend((0..150).map(|_| rng.u64(10_000..=50_000)));
    let mut uniform = |count: usize| (0..count).map(|_| rng.u64(1..=100)).collect();
    let (few, many) = (uniform(5000), uniform(100_000));
    let extremes = (0..100_000).map(|at| match at % 20 {
        0 => rng.u64(10_000..=50_000),
        _ => 100,
    });
    let extremes = extremes.collect();
    let zipf = (1..=100_000).map(|rank| 100_000_000 / rank).collect();
    let job = |shape: &str, workers, weights: Vec<u64>, milliseconds| Job {
        name: format!("{}x{workers}, {shape}", weights.len()),
        workers,
        weights,
        at_most: milliseconds * MILLISECOND,
    };
    vec![
        job("reference", 100, reference, 1.0),
        job("weights 1..100", 64, few, 2.0),
        job("weights 1..100", 1000, many, 50.0),
        job("one in 20 extreme", 1000, extremes, 50.0),
        job("Zipf", 1000, zipf, 50.0),
    ]
}

impl Job {
    /// The planner alone.
    fn dense(&self, rounds: usize) -> Vec<Figure> {
        let plan = |workers: usize, previous: &[u32]| {
            let slots = vec![Slot::new(1.0); workers];
            let preferred = preferred(previous.len(), workers);
            let solve = || {
                let problem = Problem {
                    weights: Weights::Each(&self.weights),
                    slots: &slots,
                    previous,
                };
                banded(&problem, &Band::default(), |at| preferred[at as usize]).expect("a plan")
            };
            (clock::median_of(rounds, || timed(solve)), solve())
        };
        let figure = |case, (time, plan): &(f64, Plan)| {
            self.figure(case, "dense", *time, plan.certificate.moves)
        };
        let cold = plan(self.workers, &vec![NONE; self.weights.len()]);
        let owners = &cold.1.owners;
        let left = self.workers - self.workers / 10;
        let gone = |&owner: &u32| if owner as usize >= left { GONE } else { owner };
        let orphaned: Vec<u32> = owners.iter().map(gone).collect();
        vec![
            figure("cold start", &cold),
            figure("nothing changed", &plan(self.workers, owners)),
            figure(
                "one in ten joins",
                &plan(self.workers + self.workers / 10, owners),
            ),
            figure("one in ten leaves", &plan(left, &orphaned)),
        ]
    }

    /// The strategy, names and all.
    fn named(&self, rounds: usize) -> Vec<Figure> {
        let partitions = scene::weighted_shards(&self.weights);
        let partitions: &Partitions = &partitions;
        let workers = |count| Workers::numbered("worker", count).expect("few enough workers");
        let strategy = WeightedConsistentHash::new();
        let propose = |count: usize, previous: Option<&Assignment>| {
            let workers = workers(count);
            let solve = || {
                let proposal = strategy.propose(&workers, partitions, previous);
                proposal.expect("there are workers")
            };
            (clock::median_of(rounds, || timed(solve)), solve())
        };
        let figure = |case, (time, proposal): &(f64, Proposal)| {
            self.figure(case, "propose", *time, proposal.certificate.moves)
        };
        let cold = propose(self.workers, None);
        let previous = Some(&cold.1.assignment);
        let tenth = self.workers / 10;
        vec![
            figure("cold start", &cold),
            figure("nothing changed", &propose(self.workers, previous)),
            figure("one in ten joins", &propose(self.workers + tenth, previous)),
            figure(
                "one in ten leaves",
                &propose(self.workers - tenth, previous),
            ),
        ]
    }

    fn figure(&self, case: &'static str, way: &'static str, value: f64, moves: u32) -> Figure {
        Figure {
            job: self.name.clone(),
            case,
            way,
            unit: Unit::Nanoseconds,
            value,
            at_most: Some(self.at_most),
            moves: Some(moves),
        }
    }
}
