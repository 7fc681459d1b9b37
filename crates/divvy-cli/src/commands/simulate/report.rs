//! What a run came to, as text and as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use divvy_sim::{Failure as Found, Totals};
use serde::Serialize;

use crate::failure::Failure;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// What is printed as JSON.
#[derive(Serialize)]
pub(super) struct Result<'a> {
    seeds: u64,
    cluster_hours: f64,
    events: u64,
    grants: u64,
    revocations: u64,
    effects: u64,
    violations: u64,
    faults: &'a BTreeMap<String, u64>,
    failures: Vec<Failed>,
}

/// A seed that broke an invariant.
#[derive(Serialize)]
struct Failed {
    seed: u64,
    invariant: &'static str,
    property: &'static str,
    seen: String,
    faults: usize,
    command: String,
    trace_tail: Vec<String>,
}

impl<'a> Result<'a> {
    pub(super) fn new(totals: &'a Totals, failures: &[Found]) -> Self {
        let failed = |failure: &Found| Failed {
            seed: failure.trial.seed,
            invariant: failure.broken.invariant,
            property: failure.broken.property,
            seen: failure.broken.seen.clone(),
            faults: failure.faults,
            command: failure.trial.command(),
            trace_tail: failure.tail.clone(),
        };
        Self {
            seeds: totals.seeds,
            cluster_hours: totals.cluster_hours(),
            events: totals.events,
            grants: totals.grants,
            revocations: totals.revocations,
            effects: totals.effects,
            violations: totals.violations,
            faults: &totals.faults,
            failures: failures.iter().map(failed).collect(),
        }
    }
}

pub(super) fn write_totals(
    out: &mut dyn Write,
    totals: &Totals,
) -> std::result::Result<(), Failure> {
    let terminal = Terminal::of_stdout();
    let mut table = Table::new([
        ("fault".to_owned(), Align::Left),
        ("times".to_owned(), Align::Right),
    ]);
    for (name, count) in &totals.faults {
        let tone = if *count == 0 {
            Tone::Faint
        } else {
            Tone::Plain
        };
        table.push(tone, vec![name.replace('_', " "), count.to_string()]);
    }
    table.write(out, terminal.colour).map_err(Failure::output)?;
    writeln!(
        out,
        "\n{} seeds, {:.1} cluster-hours, {} events, {} grants, {} effects: {} violations",
        totals.seeds,
        totals.cluster_hours(),
        totals.events,
        totals.grants,
        totals.effects,
        totals.violations
    )
    .map_err(Failure::output)
}

pub(super) fn write_failure(
    out: &mut dyn Write,
    failure: &Found,
) -> std::result::Result<(), Failure> {
    let mut write = || {
        writeln!(out, "\nseed {}: {}", failure.trial.seed, failure.broken)?;
        writeln!(
            out,
            "with {} faults; the last of the trace:",
            failure.faults
        )?;
        for line in &failure.tail {
            writeln!(out, "  {line}")?;
        }
        let trial = &failure.trial;
        writeln!(out, "to see all of it:\n  {}", trial.command())?;
        writeln!(out, "to watch it:\n  {}", trial.replay_command())
    };
    write().map_err(Failure::output)
}
