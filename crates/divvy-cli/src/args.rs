//! What may be typed. Values that need more than a word to check (workers,
//! partitions, files) stay text here and are read by [`crate::input`].

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use divvy::{Invalid, KeyScheme, SchemeName, StrategyName, VIRTUAL_NODES_MAX};

mod help;

/// divvy divides partitions of work among workers: fairly, with few moves, one owner each.
#[derive(Debug, Parser)]
#[command(
    name = "divvy",
    version,
    long_about = help::DIVVY,
    after_long_help = help::DIVVY_EXAMPLES,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Args {
    /// Say on stderr how things are done
    #[arg(short, long, global = true, display_order = 100)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say which partition a key belongs to
    #[command(long_about = help::KEY, after_long_help = help::KEY_EXAMPLES)]
    Key(KeyArgs),
    /// Place partitions on workers and show how even that is
    #[command(
        long_about = help::ASSIGN,
        after_long_help = help::ASSIGN_EXAMPLES,
        override_usage = "divvy assign --workers <WORKERS> --partitions <PARTITIONS> [OPTIONS]"
    )]
    Assign(AssignArgs),
    /// Show the ranking behind the place of one partition
    #[command(
        long_about = help::EXPLAIN,
        after_long_help = help::EXPLAIN_EXAMPLES,
        override_usage = "divvy explain <PARTITION> --workers <WORKERS> [OPTIONS]"
    )]
    Explain(ExplainArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// The keys; one that starts with - goes behind --
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    pub(crate) keys: Vec<String>,
    /// How many partitions there are
    #[arg(
        long,
        value_name = "N",
        default_value = "100",
        allow_negative_numbers = true
    )]
    pub(crate) partitions: String,
    /// How a key becomes a number: xxh3, djb2-js, djb2-32 or djb2-64
    #[arg(long, value_name = "SCHEME", default_value_t)]
    pub(crate) scheme: KeyScheme,
    /// Name partitions as shards of a group, NAME:<n>, in place of partition_<n>
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// Print JSON: a list of {"key", "partition", "name", "hash"}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AssignArgs {
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    /// What to place: a count, groups with counts, or a file
    #[arg(
        long,
        value_name = "N|GROUP:N,...|@FILE",
        allow_negative_numbers = true,
        display_order = 2
    )]
    pub(crate) partitions: Option<String>,
    /// Print JSON: what --previous reads
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the load of each worker, with the mean, into an SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// Also list the partitions of each worker
    #[arg(long)]
    pub(crate) list: bool,
    /// Show all workers; on a terminal a long table is shortened otherwise
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The partition, such as default:17
    #[arg(value_name = "PARTITION")]
    pub(crate) partition: String,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    /// The set that it is one of; needed where that decides its place (round-robin)
    #[arg(
        long,
        value_name = "N|GROUP:N,...|@FILE",
        allow_negative_numbers = true,
        display_order = 2
    )]
    pub(crate) partitions: Option<String>,
    /// Show only the first N workers of the ranking [default: 10, with --json all]
    #[arg(long, value_name = "N", value_parser = top, allow_negative_numbers = true)]
    pub(crate) top: Option<usize>,
    /// Print JSON: {"partition", "owner", "method", "ranking": [{"rank", "worker", ...}]}
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `assign` and `explain` share: who takes part, and by which strategy.
#[derive(Debug, clap::Args)]
pub(crate) struct PlacementArgs {
    /// Who takes part: a count, ids with weights, or a file
    #[arg(
        long,
        value_name = "N|ID[=WEIGHT],...|@FILE",
        allow_negative_numbers = true,
        display_order = 1
    )]
    pub(crate) workers: Option<String>,
    /// The assignment in force: a file with what `assign --json` printed
    #[arg(long, value_name = "@FILE", display_order = 3)]
    pub(crate) previous: Option<String>,
    /// rendezvous, rendezvous-parallel, consistent-hash or round-robin
    #[arg(long, value_name = "NAME", default_value_t, display_order = 4)]
    pub(crate) strategy: StrategyName,
    /// Points on the ring per unit of weight, by default 150; of consistent-hash
    #[arg(
        long,
        value_name = "N",
        value_parser = virtual_nodes,
        allow_negative_numbers = true,
        help_heading = "Options of strategies"
    )]
    pub(crate) virtual_nodes: Option<u32>,
    /// Gives an independent placement, by default 0; of consistent-hash and rendezvous
    #[arg(
        long,
        value_name = "N",
        value_parser = seed,
        allow_negative_numbers = true,
        help_heading = "Options of strategies"
    )]
    pub(crate) seed: Option<u64>,
    /// How scores come about: native, cruster or rendezgo; of rendezvous
    #[arg(long, value_name = "SCHEME", help_heading = "Options of strategies")]
    pub(crate) scheme: Option<SchemeName>,
    /// The cluster that the workers belong to; of the scheme rendezgo
    #[arg(long, value_name = "NAME", help_heading = "Options of strategies")]
    pub(crate) cluster: Option<String>,
}

fn top(text: &str) -> Result<usize, Invalid> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| Invalid::new("top", text, "must be a whole number of at least 1"))
}

fn seed(text: &str) -> Result<u64, Invalid> {
    let rule = || format!("must be a whole number in 0..={}", u64::MAX);
    let number = text.parse().ok();
    number.ok_or_else(|| Invalid::new("seed", text, rule()))
}

/// What fits the type; the library corrects what is out of bounds and warns.
fn virtual_nodes(text: &str) -> Result<u32, Invalid> {
    let rule = || format!("must be a whole number in 1..={VIRTUAL_NODES_MAX}");
    let number = text.parse().ok();
    number.ok_or_else(|| Invalid::new("virtual nodes", text, rule()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }
}
