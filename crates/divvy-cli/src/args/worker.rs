//! What may be typed after `divvy worker`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use divvy::StrategyName;
use divvy::store::StoreUrl;

use super::exec::ExecArgs;
use super::listen::ListenArgs;
use super::named;
use super::store::{StoreArgs, span, typed_store};
use super::webhook::WebhookArgs;
use super::whole::number;

/// Timings that fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// A lease of 0.7 seconds
    Fast,
    /// A lease of 6 seconds
    Default,
    /// A lease of 15 seconds
    Calm,
}

impl Preset {
    /// Its name, as it is typed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Default => "default",
            Self::Calm => "calm",
        }
    }
}

/// What becomes of the partitions of a worker that is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnStop {
    /// Others get them at once
    Leave,
    /// They are kept for it
    Return,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// The store of the cluster [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    /// Who this is: whoever comes back under a name gets its id and its partitions again
    /// [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) instance: Option<String>,
    /// Its capacity in relation to the others [default: 1]
    #[arg(long, value_name = "W", allow_negative_numbers = true, value_parser = number("weight"))]
    pub(crate) weight: Option<f64>,
    /// Its zone, for the strategy zoned
    #[arg(long, value_name = "NAME")]
    pub(crate) zone: Option<String>,
    /// A file with settings, JSON or YAML; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Timings; in the file of --config they are its field preset [default: default]
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub(crate) preset: Option<Preset>,
    /// What there is to own: a count, groups with counts, or a file, which is read again when it
    /// changes
    #[arg(
        long,
        value_name = "N|GROUP:N,...|@FILE",
        allow_negative_numbers = true
    )]
    pub(crate) partitions: Option<String>,
    /// How partitions are placed; options of strategies stand in a file [default:
    /// weighted-consistent-hash]
    #[arg(long, value_name = "NAME", value_parser = named::strategy())]
    pub(crate) strategy: Option<StrategyName>,
    /// The assignment in force in another system, which the first placement of the cluster leaves
    /// as it is: CSV with the columns key and worker, or JSON {worker: [partition, ...]}
    #[arg(long, value_name = "@FILE")]
    pub(crate) previous: Option<String>,
    /// What to do with partitions when a signal ends the worker [default: shutdown of --config, or
    /// else leave]
    #[arg(long, value_name = "HOW")]
    pub(crate) on_stop: Option<OnStop>,
    /// For how long they are kept with --on-stop return [default: 30s]
    #[arg(long, value_name = "SPAN", value_parser = span, requires = "on_stop")]
    pub(crate) return_within: Option<Duration>,
    /// Print the settings in force, each with where it comes from, and end
    #[arg(long)]
    pub(crate) print_config: bool,
    /// End after this long
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) run_for: Option<Duration>,
    /// Work so often: for each partition that is owned, a line with its token
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) tick: Option<Duration>,
    /// Also print every renewal of the lease
    #[arg(long)]
    pub(crate) deadlines: bool,
    /// Write down everything that it tries to write to the store
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) writes: Option<PathBuf>,
    /// End with the process that started this one
    #[arg(long, hide = true)]
    pub(crate) die_with_parent: bool,
    #[command(flatten)]
    pub(crate) run: ExecArgs,
    #[command(flatten)]
    pub(crate) webhook: WebhookArgs,
    #[command(flatten)]
    pub(crate) http: ListenArgs,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}
