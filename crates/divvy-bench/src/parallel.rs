//! From which size on all cores are better than one.

use std::io::Write;

use anyhow::Result;
use divvy_core::{Rendezvous, Strategy};
use serde::Serialize;

use crate::clock::{self, timed};
use crate::scene::Scene;
use crate::table;

/// One size: rendezvous on one core and on all.
#[derive(Debug, Clone, Serialize)]
struct Row {
    partitions: usize,
    workers: usize,
    sequential_ns: f64,
    parallel_ns: f64,
    /// Sequential ÷ parallel: above 1, parallel pays.
    ratio: f64,
}

/// Measures a grid of sizes.
pub fn run(json: bool, quick: bool, out: &mut dyn Write) -> Result<()> {
    let (partitions, workers, rounds): (&[usize], &[usize], usize) = match quick {
        true => (&[1000], &[3, 10], 1),
        false => (&[2048, 10_000, 100_000, 1_000_000], &[3, 10, 100, 1000], 21),
    };
    let mut rows = Vec::new();
    for &partitions in partitions {
        for &workers in workers {
            eprintln!("{partitions}x{workers}");
            rows.push(measure(partitions, workers, rounds));
        }
    }
    if json {
        serde_json::to_writer_pretty(&mut *out, &rows)?;
        writeln!(out)?;
        return Ok(());
    }
    let cells = rows.iter().map(|row| {
        vec![
            format!("{}x{}", row.partitions, row.workers),
            table::time(row.sequential_ns),
            table::time(row.parallel_ns),
            table::number(row.ratio),
        ]
    });
    let headings = ["rendezvous", "one core", "all cores", "ratio"];
    writeln!(out, "{}", table::layout(&headings, 1, cells))?;
    let cores = std::thread::available_parallelism()?;
    writeln!(out, "\nOn {cores} cores; ratio above 1: parallel pays.")?;
    Ok(())
}

fn measure(partitions: usize, workers: usize, rounds: usize) -> Row {
    let scene = Scene::equal(partitions, workers);
    let assign = |strategy: &Rendezvous| {
        let assignment = strategy.assign(&scene.workers, &scene.partitions, None);
        assignment.expect("there are workers")
    };
    let (one, all) = (Rendezvous::new(), Rendezvous::parallel());
    assert_eq!(assign(&one), assign(&all), "{partitions}x{workers}");
    let (sequential_ns, parallel_ns) =
        clock::duel(rounds, || timed(|| assign(&one)), || timed(|| assign(&all)));
    Row {
        partitions,
        workers,
        sequential_ns,
        parallel_ns,
        ratio: sequential_ns / parallel_ns,
    }
}
