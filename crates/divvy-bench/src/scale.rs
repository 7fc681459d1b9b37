//! How cost grows with partitions and with workers.

mod fit;
mod plot;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use divvy_core::{
    Balanced, ConsistentHash, FilteredRendezvous, Partitions, Rendezvous, RoundRobin, Strategy,
    WeightedConsistentHash, Worker, Workers, Zoned,
};
use serde::Serialize;

use crate::clock::timed;
use crate::{scene, table};

/// A point that would take longer is left out.
const LONGEST: Duration = Duration::from_secs(20);
/// A point is measured repeatedly for about so long.
const PATIENCE: Duration = Duration::from_millis(400);
/// Workers while partitions grow.
const WORKERS: usize = 100;
/// Partitions while workers grow.
const PARTITIONS: usize = 100_000;

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Axis {
    Partitions,
    Workers,
}

/// The cost of a strategy along an axis.
#[derive(Debug, Clone, Serialize)]
struct Curve {
    strategy: &'static str,
    axis: Axis,
    /// Size and nanoseconds.
    points: Vec<(usize, f64)>,
    /// Sizes that would have taken too long.
    skipped: Vec<usize>,
    /// Cost grows with this power of the size, at the upper end.
    exponent: Option<f64>,
}

/// A strategy, and whether its workers are of ten weights.
struct Contestant {
    name: &'static str,
    strategy: Box<dyn Strategy>,
    is_weighted: bool,
}

fn contestants() -> Vec<Contestant> {
    let of = |name, strategy: Box<dyn Strategy>| Contestant {
        name,
        strategy,
        is_weighted: false,
    };
    vec![
        of("rendezvous", Box::new(Rendezvous::new())),
        Contestant {
            is_weighted: true,
            ..of("rendezvous, 10 weights", Box::new(Rendezvous::new()))
        },
        of("rendezvous-parallel", Box::new(Rendezvous::parallel())),
        of("rendezvous-filtered", Box::new(FilteredRendezvous::new())),
        of("consistent-hash", Box::new(ConsistentHash::new())),
        of(
            "weighted-consistent-hash",
            Box::new(WeightedConsistentHash::new()),
        ),
        of("balanced", Box::new(Balanced::new())),
        of("zoned", Box::new(Zoned::new())),
        of("round-robin", Box::new(RoundRobin)),
    ]
}

/// Measures all curves, prints them, and draws them where there is a place for it.
pub fn run(plot: Option<&Path>, json: bool, quick: bool, out: &mut dyn Write) -> Result<()> {
    let contestants = contestants();
    let decades = |from: u32, to: u32| (from..=to).map(|power| 10usize.pow(power)).collect();
    let partitions: Vec<usize> = if quick { decades(2, 3) } else { decades(3, 7) };
    let workers: Vec<usize> = if quick { decades(1, 2) } else { decades(1, 4) };
    let fixed = if quick { 1000 } else { PARTITIONS };
    let along_partitions = partitions.iter().map(|&count| (count, count, WORKERS));
    let mut curves = sweep(&contestants, Axis::Partitions, along_partitions);
    let along_workers = workers.iter().map(|&count| (count, fixed, count));
    curves.extend(sweep(&contestants, Axis::Workers, along_workers));
    if let Some(path) = plot {
        let picture = plot::draw(&curves, (WORKERS, fixed));
        std::fs::write(path, picture).with_context(|| path.display().to_string())?;
        eprintln!("drew {}", path.display());
    }
    if json {
        serde_json::to_writer_pretty(&mut *out, &curves)?;
        writeln!(out)?;
        return Ok(());
    }
    print(
        &curves,
        (Axis::Partitions, &partitions),
        &format!("{WORKERS} workers"),
        out,
    )?;
    print(
        &curves,
        (Axis::Workers, &workers),
        &format!("{fixed} partitions"),
        out,
    )
}

/// Size by size, so that the sets are made once for all strategies.
fn sweep(
    contestants: &[Contestant],
    axis: Axis,
    sizes: impl Iterator<Item = (usize, usize, usize)>,
) -> Vec<Curve> {
    let empty = |contestant: &Contestant| Curve {
        strategy: contestant.name,
        axis,
        points: Vec::new(),
        skipped: Vec::new(),
        exponent: None,
    };
    let mut curves: Vec<Curve> = contestants.iter().map(empty).collect();
    for (size, partitions, workers) in sizes {
        let weights: Vec<u64> = (0..partitions as u64)
            .map(|at| at * 7919 % 100 + 1)
            .collect();
        let partitions = scene::weighted_shards(&weights);
        let (equal, weighted) = (zoned_workers(workers, 1), zoned_workers(workers, 10));
        for (contestant, curve) in contestants.iter().zip(&mut curves) {
            let workers = if contestant.is_weighted {
                &weighted
            } else {
                &equal
            };
            if curve.would_take(size) > LONGEST.as_nanos() as f64 {
                eprintln!(
                    "{}: {size} {axis:?} skipped, over {LONGEST:?}",
                    contestant.name
                );
                curve.skipped.push(size);
                continue;
            }
            let time = measure(contestant.strategy.as_ref(), workers, &partitions);
            eprintln!(
                "{}: {size} {axis:?}: {}",
                contestant.name,
                table::time(time)
            );
            curve.points.push((size, time));
        }
    }
    for curve in &mut curves {
        curve.exponent = fit::exponent(&curve.points);
    }
    curves
}

impl Curve {
    /// A guess from the last point, as if cost were linear.
    fn would_take(&self, size: usize) -> f64 {
        let guess = |&(last, time): &(usize, f64)| time * size as f64 / last as f64;
        self.points.last().map_or(0.0, guess)
    }
}

fn zoned_workers(count: usize, classes: usize) -> Workers {
    let worker = |number: usize| {
        Worker::new(scene::name(number))?
            .with_weight((number % classes + 1) as f64)?
            .with_zone(format!("zone-{}", number % 3))
    };
    let workers: Result<Vec<_>, _> = (0..count).map(worker).collect();
    Workers::new(workers.expect("valid workers")).expect("names are distinct")
}

/// The median time.
fn measure(strategy: &dyn Strategy, workers: &Workers, partitions: &Partitions) -> f64 {
    let run = || {
        let assignment = strategy.assign(workers, partitions, None);
        assignment.expect("there are workers")
    };
    let first = timed(run);
    let more = (PATIENCE.as_nanos() / first.as_nanos().max(1)).min(21);
    let mut times: Vec<Duration> = (0..more).map(|_| timed(run)).collect();
    if times.is_empty() {
        times.push(first);
    }
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64
}

fn print(
    curves: &[Curve],
    (axis, sizes): (Axis, &[usize]),
    fixed: &str,
    out: &mut dyn Write,
) -> Result<()> {
    let title = match axis {
        Axis::Partitions => "partitions",
        Axis::Workers => "workers",
    };
    let mut headings = vec![title.to_owned()];
    headings.extend(sizes.iter().map(usize::to_string));
    headings.push("exponent".to_owned());
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let of_axis = curves.iter().filter(|curve| curve.axis == axis);
    let cells = of_axis.map(|curve| {
        let time = |size: &usize| {
            let found = curve.points.iter().find(|(measured, _)| measured == size);
            found.map_or_else(|| "skipped".to_owned(), |&(_, time)| table::time(time))
        };
        let mut row = vec![curve.strategy.to_owned()];
        row.extend(sizes.iter().map(time));
        row.push(
            curve
                .exponent
                .map(|e| format!("{e:.2}"))
                .unwrap_or_default(),
        );
        row
    });
    let layout = table::layout(&headings, 1, cells);
    writeln!(out, "Cost against {title}, with {fixed}\n{layout}\n")?;
    Ok(())
}
