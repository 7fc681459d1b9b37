//! What may be typed after `divvy simulate`.

use std::path::PathBuf;

use clap::ValueEnum;
use divvy::Invalid;

use super::whole::{at_least_one, whole};

/// Highest number of a fault.
const FAULTS_MAX: usize = 1_000_000;
/// Most threads.
const JOBS_MAX: usize = 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Which kind of coordination
    #[arg(long, value_name = "MODE", default_value = "leader")]
    pub(crate) mode: Mode,
    /// Run so many seeds [default: 1000]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>("seeds"), group = "what")]
    pub(crate) seeds: Option<u64>,
    /// Run seeds until their clusters have lived so many hours together
    #[arg(long, value_name = "H", value_parser = hours, group = "what")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) hours: Option<f64>,
    /// Seed of the one world to run
    #[arg(long, value_name = "N", value_parser = whole("seed", 0..=u64::MAX), group = "what")]
    pub(crate) seed: Option<u64>,
    /// Plant each known mistake and show which invariant catches it, and when
    #[arg(long, group = "what", conflicts_with_all = ["trace", "resume"])]
    pub(crate) defects: bool,
    /// Measure hand-overs in the time of the world, and how fast it runs
    #[arg(long, group = "what", conflicts_with_all = ["trace", "resume"])]
    pub(crate) figures: bool,
    /// The first seed of --seeds and --hours [default: 0]
    #[arg(long, value_name = "N", value_parser = whole("from", 0..=u64::MAX))]
    #[arg(conflicts_with_all = ["seed", "defects", "figures"])]
    pub(crate) from: Option<u64>,
    /// Print all that happens, one line each
    #[arg(long, requires = "seed", conflicts_with_all = ["json", "seeds", "hours"])]
    pub(crate) trace: bool,
    /// Leave these faults out of the world, by their number in the trace
    #[arg(long, value_name = "N,...", requires = "seed", value_delimiter = ',', value_parser = fault())]
    #[arg(conflicts_with_all = ["seeds", "hours"])]
    pub(crate) without: Vec<usize>,
    /// Plant this mistake into every member
    #[arg(long, value_name = "NAME", conflicts_with_all = ["defects", "figures", "resume"])]
    pub(crate) defect: Option<String>,
    /// Go on from this file, if it is there, and write to it how far it got
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    pub(crate) resume: Option<PathBuf>,
    /// Threads to run on [default: all cores]
    #[arg(long, value_name = "N", value_parser = whole("jobs", 1..=JOBS_MAX))]
    pub(crate) jobs: Option<usize>,
    /// Print JSON: {"seeds", "cluster_hours", "events", "grants", "violations", "faults", ...}
    #[arg(long)]
    pub(crate) json: bool,
}

/// A kind of coordination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// A leader places partitions, by compare-and-set in a store: `divvy worker`
    Leader,
    /// Workers take leases that a store lets expire: `divvy agent`
    Lease,
}

/// The number of a fault in a trace.
pub(super) fn fault() -> impl Fn(&str) -> Result<usize, Invalid> + Clone + Send + Sync + 'static {
    whole("without", 0..=FAULTS_MAX)
}

fn hours(text: &str) -> Result<f64, Invalid> {
    let hours = text
        .parse()
        .ok()
        .filter(|&h: &f64| h > 0.0 && h.is_finite());
    hours.ok_or_else(|| Invalid::new("hours", text, "must be a number above 0"))
}
