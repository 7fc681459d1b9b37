//! How long plans take that know the previous assignment.
//!
//! Each is measured twice: the dense planner alone, on indices and with preferences looked up, and
//! [`Strategy::propose`](divvy_core::Strategy::propose) with names, hashing and the account of every
//! change.

mod banded;
mod counted;
mod equal;

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use crate::table;

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Nanoseconds,
    /// A multiple of something measured in turns with it.
    Ratio,
}

/// A plan that was timed.
#[derive(Debug, Clone, Serialize)]
struct Figure {
    job: String,
    case: &'static str,
    way: &'static str,
    unit: Unit,
    value: f64,
    at_most: Option<f64>,
    moves: Option<u32>,
}

impl Figure {
    fn cells(&self) -> Vec<String> {
        let shown = |value: f64| match self.unit {
            Unit::Nanoseconds => table::time(value),
            Unit::Ratio => format!("{}x", table::number(value)),
        };
        let limit = self.at_most.map(|at_most| {
            let verdict = match self.value <= at_most {
                true => "reached",
                false => "MISSED",
            };
            format!("{} {verdict}", shown(at_most))
        });
        vec![
            self.job.clone(),
            self.case.to_owned(),
            self.way.to_owned(),
            shown(self.value),
            limit.unwrap_or_default(),
            self.moves
                .map(|moves| moves.to_string())
                .unwrap_or_default(),
        ]
    }
}

/// Measures all plans.
pub fn run(json: bool, quick: bool, out: &mut dyn Write) -> Result<()> {
    let rounds = if quick { 1 } else { 15 };
    let mut figures = banded::measure(rounds, quick);
    figures.extend(counted::measure(rounds, quick));
    figures.extend(equal::measure(rounds, quick));
    if json {
        serde_json::to_writer_pretty(&mut *out, &figures)?;
        writeln!(out)?;
        return Ok(());
    }
    let headings = ["plan", "event", "way", "median", "at most", "moves"];
    let cells = figures.iter().map(Figure::cells);
    writeln!(out, "{}", table::layout(&headings, 3, cells))?;
    writeln!(
        out,
        "\nMultiples (x) are of what the way names, measured in turns: a copy of all previous owners, \
         or ConsistentHash."
    )?;
    Ok(())
}

/// A worker for each partition, as if by hash.
fn preferred(partitions: usize, workers: usize) -> Vec<u32> {
    let mut rng = fastrand::Rng::with_seed(7);
    (0..partitions)
        .map(|_| rng.u32(0..workers as u32))
        .collect()
}
