//! What may be typed after `divvy agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use divvy::store::StoreUrl;

use super::listen::ListenArgs;
use super::store::{StoreArgs, span, typed_store};

/// Timings that fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentPreset {
    /// A lease of a second
    Fast,
    /// A lease of 10 seconds
    Default,
    /// Those of the system whose layout of keys is shared: a lease of 90 seconds
    Rendezgo,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// The store of the cluster [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    /// This worker's name in its cluster [default: the pod's, or the host's with a random end]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Its capacity in relation to the others
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    pub(crate) weight: Option<f64>,
    /// What there is to own: groups with counts, or `dynamic` for those of the store
    #[arg(long, value_name = "NAME:N,...|dynamic")]
    pub(crate) workloads: Option<String>,
    /// A file with settings, JSON or YAML; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Timings, where no file has them
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) preset: Option<AgentPreset>,
    /// What to run for each partition that is owned
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// How long a command may take to end after SIGTERM, before SIGKILL
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span)]
    pub(crate) grace: Duration,
    /// A directory for what commands write, one file each, in place of stdout and stderr
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
    /// A command whose success says that this worker is healthy
    #[arg(long, value_name = "COMMAND")]
    pub(crate) health_cmd: Option<String>,
    /// How often it is asked, and how long it may take
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = span)]
    pub(crate) health_interval: Duration,
    /// End after this long
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) run_for: Option<Duration>,
    #[command(flatten)]
    pub(crate) http: ListenArgs,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

/// A command that ends with the process that started it.
#[derive(Debug, clap::Args)]
pub(crate) struct ChildArgs {
    /// The process that started it
    #[arg(long)]
    pub(crate) parent: u32,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}
