//! What may be typed after `divvy workload`.

use clap::Subcommand;
use divvy::store::StoreUrl;

use super::store::{StoreArgs, typed_store};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Show the workloads of a store
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: WorkloadStore,
    },
    /// Add a workload, or change it
    Set {
        /// Its name
        name: String,
        /// How many units it has
        #[arg(allow_negative_numbers = true)]
        units: u32,
        /// How many of them one worker owns at most; 0 is no limit
        #[arg(long, value_name = "N", default_value_t = 0)]
        max_per_worker: u32,
        #[command(flatten)]
        at: WorkloadStore,
    },
    /// Remove a workload: its units stop
    Remove {
        /// Its name
        name: String,
        #[command(flatten)]
        at: WorkloadStore,
    },
}

/// Whose workloads.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkloadStore {
    /// The store of the cluster [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}
