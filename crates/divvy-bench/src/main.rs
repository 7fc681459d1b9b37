//! The command line of the benchmarks: see the library's page for what each command answers.

use std::io;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use divvy_bench::{heap, once, parallel, peers, plan, scale};

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// divvy measured beside other crates and beside itself.
#[derive(Debug, Parser)]
#[command(name = "divvy-bench", version, about)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compares with other crates: build, lookup, whole assignment, heap, load spread, movement
    ///
    /// Ratios are peer ÷ divvy: above 1, divvy is ahead. With --json the same rows are an array of
    /// {"job", "peer", "peer_ns", "divvy_ns", "ratio"}; rows that are no times say their "unit".
    Peers {
        /// An array on standard output, not tables
        #[arg(long)]
        json: bool,
        /// Only what has this in its job or peer, such as "hrw" or "2048x1000"
        #[arg(long, value_name = "SUBSTRING")]
        only: Option<String>,
        /// Interleaved rounds, of which the median counts
        #[arg(long, value_name = "N")]
        rounds: Option<usize>,
        /// Small sizes and one round: whether it runs, not how fast
        #[arg(long)]
        quick: bool,
    },
    /// Measures cost against partitions (10^3..10^7) and workers (10..10^4), with fitted exponents
    Scale {
        /// Where to draw the curves, as SVG
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
        /// An array on standard output, not tables
        #[arg(long)]
        json: bool,
        /// Small sizes
        #[arg(long)]
        quick: bool,
    },
    /// Times plans that know the previous assignment
    Plan {
        /// An array on standard output, not a table
        #[arg(long)]
        json: bool,
        /// Small sizes
        #[arg(long)]
        quick: bool,
    },
    /// Compares rendezvous on one core with rendezvous on all
    Parallel {
        /// An array on standard output, not a table
        #[arg(long)]
        json: bool,
        /// Small sizes
        #[arg(long)]
        quick: bool,
    },
    /// Runs one job exactly once, without a clock, to count instructions
    #[command(after_help = COUNTING)]
    Once {
        /// A job and its size, such as "rendezvous 2048x1000"
        job: String,
    },
}

const COUNTING: &str = "\
Jobs: balanced, consistent-hash, cruster, distinct, rendezvous, rendezvous-parallel, round-robin,
weighted, weighted-consistent-hash, zoned (weighted and distinct are rendezvous with worker weights).

Instructions of one assignment, without the set-up, after \"Collected\":
    cargo build --release -p divvy-bench
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*measured_once*' \\
        target/release/divvy-bench once 'rendezvous 2048x1000'";

fn main() -> Result<()> {
    let out = &mut io::stdout().lock();
    match Args::parse().command {
        Command::Peers {
            json,
            only,
            rounds,
            quick,
        } => {
            let options = peers::Options {
                json,
                only,
                rounds,
                quick,
            };
            peers::run(&options, out)
        }
        Command::Scale { plot, json, quick } => scale::run(plot.as_deref(), json, quick, out),
        Command::Plan { json, quick } => plan::run(json, quick, out),
        Command::Parallel { json, quick } => parallel::run(json, quick, out),
        Command::Once { job } => {
            eprintln!("{} partitions placed", once::run(&job)?);
            Ok(())
        }
    }
}
