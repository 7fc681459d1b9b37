//! divvy beside the crates that a Rust user would pick today.
//!
//! A duel is a peer and divvy at the same job, taking turns. Keys are strings and are hashed on the
//! clock on both sides; structures are built beforehand where the job is to place or to look up, and on
//! the clock where it is to build.

mod assignment;
mod live;
mod quality;
mod rings;
mod row;

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use crate::{clock, heap};
use row::{Row, Section, Unit};

/// How many rounds unless told.
const ROUNDS: usize = 11;

/// What to run and how to show it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// As JSON, not as tables.
    pub json: bool,
    /// Only the duels that have this in their job or peer.
    pub only: Option<String>,
    /// How many rounds.
    pub rounds: Option<usize>,
    /// Small sizes and few rounds: whether it runs, not how fast.
    pub quick: bool,
}

/// How much there is to place.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Partitions of a whole assignment.
    shards: usize,
    /// Workers of a whole assignment, one after the other.
    workers: &'static [usize],
    /// The most workers.
    many_workers: usize,
    /// Keys of a lookup or of joins and leaves.
    keys: usize,
    /// Keys and workers where load and movement are looked at.
    spread: (usize, usize),
}

impl Sizes {
    const FULL: Self = Self {
        shards: 2048,
        workers: &[3, 10, 100, 1000],
        many_workers: 1000,
        keys: 1_000_000,
        spread: (100_000, 100),
    };
    const QUICK: Self = Self {
        shards: 256,
        workers: &[3, 10],
        many_workers: 20,
        keys: 2000,
        spread: (2000, 10),
    };
}

/// Runs all duels that are wanted and writes what came out.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<()> {
    let mut arena = Arena::new(options);
    rings::build(&mut arena);
    rings::lookup(&mut arena);
    assignment::rendezvous(&mut arena);
    assignment::weighted(&mut arena);
    assignment::rings(&mut arena);
    assignment::cruster_scheme(&mut arena);
    live::join_and_leave(&mut arena);
    rings::memory(&mut arena);
    quality::spread(&mut arena);
    quality::movement(&mut arena);
    match options.json {
        true => row::write_json(&arena.rows, out),
        false => row::write_tables(&arena.rows, out),
    }
}

/// Where duels are fought and written down.
struct Arena<'a> {
    options: &'a Options,
    sizes: Sizes,
    rounds: usize,
    rows: Vec<Row>,
}

impl<'a> Arena<'a> {
    fn new(options: &'a Options) -> Self {
        let (sizes, rounds) = match options.quick {
            true => (Sizes::QUICK, 1),
            false => (Sizes::FULL, ROUNDS),
        };
        Self {
            options,
            sizes,
            rounds: options.rounds.unwrap_or(rounds),
            rows: Vec::new(),
        }
    }

    /// Whether a duel was asked for. Asked before anything is built for it.
    fn wants(&self, job: &str, peer: &str) -> bool {
        let wanted = |part: &String| format!("{job} {peer}").contains(part.as_str());
        self.options.only.as_ref().is_none_or(wanted)
    }

    /// Lets the two take turns. Each runs once and says how long that took.
    fn duel(
        &mut self,
        section: Section,
        job: &str,
        peer: &str,
        peer_run: impl FnMut() -> Duration,
        divvy_run: impl FnMut() -> Duration,
    ) {
        let (peer_ns, divvy_ns) = clock::duel(self.rounds, peer_run, divvy_run);
        self.record(section, job, peer, Unit::Nanoseconds, (peer_ns, divvy_ns));
    }

    /// Compares the heap that the two keep.
    fn weigh<P, D>(
        &mut self,
        job: &str,
        peer: &str,
        peer_make: impl FnOnce() -> P,
        divvy_make: impl FnOnce() -> D,
    ) {
        let kept = (
            heap::bytes_kept(peer_make) as f64,
            heap::bytes_kept(divvy_make) as f64,
        );
        self.record(Section::Heap, job, peer, Unit::Bytes, kept);
    }

    fn record(&mut self, section: Section, job: &str, peer: &str, unit: Unit, sides: (f64, f64)) {
        let row = Row::new(section, job, peer, unit, sides);
        eprintln!("{job}, {peer}: {}", row.summary());
        self.rows.push(row);
    }
}
