//! What may be typed after `divvy bench`.

use std::time::Duration;

use clap::Subcommand;
use divvy::store::StoreUrl;

use super::help;
use super::store::{StoreArgs, span, typed_store};

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure compare-and-set, watches and leases on stores
    #[command(long_about = help::BENCH_STORES, after_long_help = help::BENCH_STORES_EXAMPLES)]
    Stores(StoresArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct StoresArgs {
    /// A store to measure; may be given several times [default: that of DIVVY_STORE, or memory and
    /// a new file]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Vec<StoreUrl>,
    /// How long to measure each load
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span)]
    pub(crate) time: Duration,
    /// How many clients work at once, where it is not one
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// How many leases are held and renewed together
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) leases: u32,
    /// How often they are renewed where that is paced
    #[arg(long, value_name = "SPAN", default_value = "3s", value_parser = span)]
    pub(crate) interval: Duration,
    /// Also run redis-benchmark, if it is installed, with the like of each load
    #[arg(long)]
    pub(crate) peer: bool,
    /// Print JSON: a list of {"store", "load", "per_second", "p50_ms", "p99_ms", "max_ms", ...}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}
