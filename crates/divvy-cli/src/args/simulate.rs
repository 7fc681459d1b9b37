//! What may be typed after `divvy simulate`.

use std::path::PathBuf;

use clap::ValueEnum;
use divvy::Invalid;

use super::whole::whole;

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
    #[arg(long, value_name = "N", value_parser = count, group = "what")]
    pub(crate) seeds: Option<u64>,
    /// Run seeds until their clusters have lived so many hours together
    #[arg(long, value_name = "H", value_parser = hours, group = "what")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) hours: Option<f64>,
    /// Seed of the one world to run
    #[arg(long, value_name = "N", value_parser = seed, group = "what")]
    pub(crate) seed: Option<u64>,
    /// Plant each known mistake and show which invariant catches it, and when
    #[arg(long, group = "what", conflicts_with_all = ["trace", "resume"])]
    pub(crate) defects: bool,
    /// Measure hand-overs in the time of the world, and how fast it runs
    #[arg(long, group = "what", conflicts_with_all = ["trace", "resume"])]
    pub(crate) figures: bool,
    /// The first seed of --seeds and --hours [default: 0]
    #[arg(long, value_name = "N", value_parser = from)]
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
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<usize>,
    /// Print JSON: {"seeds", "cluster_hours", "events", "grants", "violations", "faults", ...}
    #[arg(long)]
    pub(crate) json: bool,
}

/// A kind of coordination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// A leader places partitions, by compare-and-set in a store
    Leader,
    /// Workers take leases that a store lets expire
    Lease,
}

fn count(text: &str) -> Result<u64, Invalid> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| Invalid::new("seeds", text, "must be a whole number of at least 1"))
}

/// The number of a fault in a trace.
pub(super) fn fault() -> impl Fn(&str) -> Result<usize, Invalid> + Clone + Send + Sync + 'static {
    whole("without", 0..=FAULTS_MAX)
}

fn seed(text: &str) -> Result<u64, Invalid> {
    number("seed", text)
}

fn from(text: &str) -> Result<u64, Invalid> {
    number("from", text)
}

fn number(field: &'static str, text: &str) -> Result<u64, Invalid> {
    let rule = format!("must be a whole number in 0..={}", u64::MAX);
    text.parse()
        .map_err(|_error| Invalid::new(field, text, rule))
}

fn hours(text: &str) -> Result<f64, Invalid> {
    let hours = text
        .parse()
        .ok()
        .filter(|&h: &f64| h > 0.0 && h.is_finite());
    hours.ok_or_else(|| Invalid::new("hours", text, "must be a number above 0"))
}

fn jobs(text: &str) -> Result<usize, Invalid> {
    let number = text.parse().ok().filter(|n| (1..=JOBS_MAX).contains(n));
    let rule = format!("must be a whole number in 1..={JOBS_MAX}");
    number.ok_or_else(|| Invalid::new("jobs", text, rule))
}
