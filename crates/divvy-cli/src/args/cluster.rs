//! What may be typed after the commands that look at a live cluster, or change
//! what is wished of it.

use std::time::Duration;

use divvy::observer::Mode;
use divvy::store::StoreUrl;

use super::named;
use super::store::{StoreArgs, span, typed_store};

/// Which live cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// The store of the cluster [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    /// Which kind of coordination [default: the one that the cluster is found in]
    #[arg(long, value_name = "MODE", value_parser = named::mode())]
    pub(crate) mode: Option<Mode>,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// List every partition, too
    #[arg(long)]
    pub(crate) list: bool,
    /// Print JSON: {"mode", "workers": [...], "partitions": [...], "problems": [...], ...}
    #[arg(long)]
    pub(crate) json: bool,
    /// In leader mode, do not wait to see whether workers renew their leases
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON: {"format", "store", "healthy", "findings": [{"check", "verdict", ...}]}
    #[arg(long)]
    pub(crate) json: bool,
    /// The store to examine [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    /// Which kind of coordination to try [default: all that the store can serve]
    #[arg(long, value_name = "MODE", value_parser = named::mode())]
    pub(crate) mode: Option<Mode>,
    /// The lease that answers have to be quick enough for [default: those of all presets]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) lease: Option<Duration>,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WhyArgs {
    /// The partition, such as orders:17
    pub(crate) partition: String,
    /// Print JSON: {"partition": {...}, "ranking": [...], "moves": [...]}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorkerNameArgs {
    /// The worker, as `divvy status` shows it
    pub(crate) worker: String,
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DrainArgs {
    /// The worker, as `divvy status` shows it
    pub(crate) worker: String,
    /// Wait until it has nothing left, at most this long
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PinArgs {
    /// The partition, such as orders:17
    pub(crate) partition: String,
    /// The worker that shall have it, as `divvy status` shows it
    pub(crate) worker: String,
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UnpinArgs {
    /// The partition, such as orders:17
    pub(crate) partition: String,
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RefreshArgs {
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TopArgs {
    /// Time between two looks
    #[arg(long, value_name = "SPAN", default_value = "1s", value_parser = span)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) at: ClusterArgs,
}
