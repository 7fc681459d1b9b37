//! What came out of a duel.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use crate::table;

/// The table that a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// Building a structure.
    Build,
    /// Looking up keys one by one.
    Lookup,
    /// Placing all partitions at once.
    Assignment,
    /// Bytes kept.
    Heap,
    /// How even the loads are.
    Spread,
    /// How much moves when a worker joins or leaves.
    Movement,
}

impl Section {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Build, "Build"),
        (Self::Lookup, "Lookup"),
        (Self::Assignment, "Whole assignment"),
        (Self::Heap, "Heap kept"),
        (
            Self::Spread,
            "Load spread (1 is even, or 0 for the deviation)",
        ),
        (Self::Movement, "Movement (1 is the minimum)"),
    ];
}

/// What the two sides are measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Unit {
    /// Median time.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Heap.
    #[serde(rename = "bytes")]
    Bytes,
    /// A share of something, as the job says.
    #[serde(rename = "share")]
    Share,
}

/// A peer beside divvy at a job. The ratio is peer ÷ divvy: above 1, divvy is ahead.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// The table it belongs to.
    #[serde(skip)]
    section: Section,
    /// What was to be done.
    job: String,
    /// The crate, and the hasher where it is not the crate's own.
    peer: String,
    /// The peer's median time, or what `unit` says.
    peer_ns: f64,
    /// divvy's.
    divvy_ns: f64,
    /// How many times better divvy is.
    ratio: f64,
    /// What the figures are, where that is not nanoseconds.
    #[serde(skip_serializing_if = "is_time")]
    unit: Unit,
}

fn is_time(unit: &Unit) -> bool {
    *unit == Unit::Nanoseconds
}

/// What is to be reached: job, peer, ratio.
const AT_LEAST: [(&str, &str, f64); 18] = [
    ("rendezvous 2048x1000", "hash-rings carp", 35.0),
    ("rendezvous 2048x1000", "hrw", 75.0),
    ("rendezvous 2048x1000", "hrw-hash", 130.0),
    ("rendezvous 2048x1000", "rendezvous_hash", 130.0),
    ("rendezvous 2048x100", "hrw", 35.0),
    ("rendezvous 2048x10", "hrw", 7.0),
    ("rendezvous 2048x3", "hrw", 3.0),
    ("weighted 2048x1000, 10 classes", "hash-rings carp", 13.0),
    ("weighted 2048x1000, 10 classes", "hrw-hash", 60.0),
    ("weighted 2048x1000, distinct", "plain f64 loop", 10.0),
    ("join 1000000x1000", "full run", 100.0),
    ("leave 1000000x1000", "full run", 80.0),
    ("ring build 1000x150", "hashring", 5.0),
    ("ring build 1000x150", "pingora-ketama", 1.2),
    ("ring lookup 1000000x1000", "hashring", 4.0),
    ("ring lookup 1000000x1000", "pingora-ketama", 1.3),
    ("ring memory 1000x150", "pingora-ketama", 1.0),
    ("cruster scheme 2048x1000", "cruster", 10.0),
];

impl Row {
    pub(super) fn new(
        section: Section,
        job: &str,
        peer: &str,
        unit: Unit,
        (peer_value, divvy_value): (f64, f64),
    ) -> Self {
        let ratio = match divvy_value {
            // Of shares both may be 0.
            0.0 if peer_value == 0.0 => 1.0,
            _ => peer_value / divvy_value,
        };
        Self {
            section,
            job: job.to_owned(),
            peer: peer.to_owned(),
            peer_ns: peer_value,
            divvy_ns: divvy_value,
            ratio,
            unit,
        }
    }

    /// The ratio that is to be reached, if there is one.
    fn at_least(&self) -> Option<f64> {
        let wanted = |&&(job, peer, _): &&(&str, &str, f64)| job == self.job && peer == self.peer;
        AT_LEAST.iter().find(wanted).map(|&(_, _, ratio)| ratio)
    }

    pub(super) fn summary(&self) -> String {
        let (peer, divvy) = (self.shown(self.peer_ns), self.shown(self.divvy_ns));
        format!(
            "{peer} against {divvy}, ratio {}",
            table::number(self.ratio)
        )
    }

    fn shown(&self, value: f64) -> String {
        match self.unit {
            Unit::Nanoseconds => table::time(value),
            Unit::Bytes => table::size(value),
            Unit::Share => format!("{value:.3}"),
        }
    }

    fn cells(&self) -> Vec<String> {
        let target = match self.at_least() {
            Some(least) if self.ratio >= least => format!("{} reached", table::number(least)),
            Some(least) => format!("{} MISSED", table::number(least)),
            None => String::new(),
        };
        vec![
            self.job.clone(),
            self.peer.clone(),
            self.shown(self.peer_ns),
            self.shown(self.divvy_ns),
            table::number(self.ratio),
            target,
        ]
    }
}

/// All rows as one array.
pub(super) fn write_json(rows: &[Row], out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, rows)?;
    writeln!(out)?;
    Ok(())
}

/// A table for each section.
pub(super) fn write_tables(rows: &[Row], out: &mut dyn Write) -> Result<()> {
    let headings = ["job", "peer", "peer's", "divvy's", "ratio", "at least"];
    for (section, title) in Section::ALL {
        let wanted = rows.iter().filter(|row| row.section == section);
        let cells: Vec<Vec<String>> = wanted.map(Row::cells).collect();
        if !cells.is_empty() {
            writeln!(out, "{title}\n{}\n", table::layout(&headings, 2, cells))?;
        }
    }
    writeln!(
        out,
        "Medians of interleaved rounds; ratio = peer ÷ divvy, above 1 divvy is ahead. \
         A peer has the hasher of its own default,\nwith fixed keys; \"+ foldhash\" is the same with a \
         faster one. pingora-ketama has 160 points per worker, and so has divvy there."
    )?;
    Ok(())
}
