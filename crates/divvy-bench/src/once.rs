//! One job exactly once, for tools that count instructions.

use std::hint::black_box;

use anyhow::{Context, Result, bail};
use divvy_core::{
    Assignment, Balanced, ConsistentHash, Rendezvous, RoundRobin, Scheme, Strategy,
    WeightedConsistentHash, Zoned,
};

use crate::scene::Scene;

/// The jobs by name, without their sizes.
pub const JOBS: [&str; 10] = [
    "balanced",
    "consistent-hash",
    "cruster",
    "distinct",
    "rendezvous",
    "rendezvous-parallel",
    "round-robin",
    "weighted",
    "weighted-consistent-hash",
    "zoned",
];

/// Runs a job such as `rendezvous 2048x1000` and says how many partitions were placed.
pub fn run(job: &str) -> Result<usize> {
    let (name, size) = job.rsplit_once(' ').with_context(|| {
        format!("{job:?} is not a job and a size, such as \"rendezvous 2048x1000\"")
    })?;
    let (partitions, workers) = size
        .split_once('x')
        .with_context(|| format!("{size:?} is not partitions x workers, such as 2048x1000"))?;
    let partitions = partitions.parse().context("number of partitions")?;
    let workers = workers.parse().context("number of workers")?;
    let scene = match name {
        "weighted" => Scene::weighted(partitions, workers, |number| (number % 10 + 1) as u32),
        "distinct" => Scene::weighted(partitions, workers, |number| (number + 1000) as u32),
        _ => Scene::equal(partitions, workers),
    };
    Ok(measured_once(strategy(name)?.as_ref(), &scene)
        .owners()
        .len())
}

fn strategy(name: &str) -> Result<Box<dyn Strategy>> {
    Ok(match name {
        "balanced" => Box::new(Balanced::new()),
        "consistent-hash" => Box::new(ConsistentHash::new()),
        "cruster" => Box::new(Rendezvous::new().with_scheme(Scheme::Cruster)),
        "rendezvous" | "weighted" | "distinct" => Box::new(Rendezvous::new()),
        "rendezvous-parallel" => Box::new(Rendezvous::parallel()),
        "round-robin" => Box::new(RoundRobin),
        "weighted-consistent-hash" => Box::new(WeightedConsistentHash::new().with_fast_path(false)),
        "zoned" => Box::new(Zoned::new()),
        _ => bail!("{name:?} is not a job; these are: {}", JOBS.join(", ")),
    })
}

/// What is measured, under a name that a profiler finds.
#[inline(never)]
fn measured_once(strategy: &dyn Strategy, scene: &Scene) -> Assignment {
    let scene = black_box(scene);
    let assignment = strategy.assign(&scene.workers, &scene.partitions, None);
    black_box(assignment.expect("there are workers"))
}
