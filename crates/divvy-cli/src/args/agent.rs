//! What may be typed after `divvy agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use divvy::store::StoreUrl;

use super::exec::ExecArgs;
use super::listen::ListenArgs;
use super::store::{LeaseStoreArgs, span, typed_store};
use super::webhook::WebhookArgs;
use super::whole::number;

/// Timings that fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentPreset {
    /// A lease of a second
    Fast,
    /// A lease of 10 seconds
    Default,
    /// Those of rendezgo: a lease of 90 seconds
    Rendezgo,
}

impl AgentPreset {
    /// Its name, as it is typed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Default => "default",
            Self::Rendezgo => "rendezgo",
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// The store of the cluster [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    /// This worker's name, as `divvy status` shows it [default: the pod's, or the host's with a random end]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Its capacity in relation to the others [default: 1]
    #[arg(long, value_name = "W", allow_negative_numbers = true, value_parser = number("weight"))]
    pub(crate) weight: Option<f64>,
    /// What there is to own: groups with counts, or `dynamic` for those of the store
    #[arg(long, value_name = "NAME:N,...|dynamic")]
    pub(crate) workloads: Option<String>,
    /// A file with settings, JSON or YAML; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Timings; in the file of --config they are its field preset [default: default]
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) preset: Option<AgentPreset>,
    /// A command whose success says that this worker is healthy
    #[arg(long, value_name = "COMMAND")]
    pub(crate) health_cmd: Option<String>,
    /// How often it is asked, and how long it may take
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = span)]
    pub(crate) health_interval: Duration,
    /// Print the settings in force, each with where it comes from, and end
    #[arg(long)]
    pub(crate) print_config: bool,
    /// End after this long
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) run_for: Option<Duration>,
    #[command(flatten)]
    pub(crate) run: ExecArgs,
    #[command(flatten)]
    pub(crate) webhook: WebhookArgs,
    /// How long a service may leave a stop unconfirmed before the lease is left to expire [default: twice stop_deadline]
    #[arg(long, value_name = "SPAN", value_parser = span, conflicts_with = "exec", help_heading = "Webhook")]
    pub(crate) webhook_stop_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) http: ListenArgs,
    #[command(flatten)]
    pub(crate) reach: LeaseStoreArgs,
}
