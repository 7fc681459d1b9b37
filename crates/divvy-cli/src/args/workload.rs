//! What may be typed after `divvy workload`.

use clap::Subcommand;
use divvy::lease::PARTITIONS_MAX;
use divvy::store::StoreUrl;

use super::help;
use super::store::{ServerArgs, typed_store};
use super::whole::whole;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Show the workloads of a store
    #[command(after_long_help = help::WORKLOAD_EXAMPLES)]
    List {
        /// Print JSON: a list of {"name", "units", "max_per_worker", "problem"}
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: WorkloadStore,
    },
    /// Add a workload, or change it
    #[command(after_long_help = help::WORKLOAD_EXAMPLES)]
    Set {
        /// The workload
        name: String,
        /// How many units it has
        #[arg(allow_negative_numbers = true, value_parser = whole("units", 1..=PARTITIONS_MAX))]
        units: u32,
        /// How many of them one worker owns at most; 0 is no limit
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole("max per worker", 0..=u32::MAX))]
        max_per_worker: u32,
        /// Do so also where it grows more than tenfold, beyond 1000 units
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        at: WorkloadStore,
    },
    /// Remove a workload: its units stop
    #[command(after_long_help = help::WORKLOAD_EXAMPLES)]
    Remove {
        /// The workload
        name: String,
        #[command(flatten)]
        at: WorkloadStore,
    },
}

/// Whose workloads.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkloadStore {
    /// The store of the workloads [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    #[command(flatten)]
    pub(crate) reach: ServerArgs,
}
