//! What may be typed. Values that need more than a word to check (workers,
//! partitions, files) stay text here and are read by [`crate::input`].

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use divvy::KeyScheme;

mod agent;
mod bench;
mod cluster;
mod exec;
mod help;
mod listen;
mod named;
mod placement;
mod playground;
mod shell;
mod simulate;
mod store;
mod webhook;
mod whole;
mod worker;
mod workload;

pub(crate) use agent::{AgentArgs, AgentPreset};
pub(crate) use bench::{BenchCommand, FailoverArgs, MessagesArgs, Part, RetentionName, StoresArgs};
pub(crate) use cluster::{
    ClusterArgs, DoctorArgs, DrainArgs, PinArgs, RefreshArgs, StatusArgs, TopArgs, UnpinArgs,
    WhyArgs, WorkerNameArgs,
};
pub(crate) use exec::{ChildArgs, ExecArgs};
pub(crate) use listen::ListenArgs;
pub(crate) use placement::{BAND_MIN, OptionArgs, PlacementArgs};
pub(crate) use playground::{MemberArgs, PlaygroundArgs};
pub(crate) use shell::{CompletionsArgs, ManArgs, Shell, WordsArgs};
pub(crate) use simulate::{Mode, SimulateArgs};
pub(crate) use store::{NatsArgs, STORE_VARIABLE};
pub(crate) use webhook::{WEBHOOK_VARIABLE, WebhookArgs};
use whole::at_least_one;
pub(crate) use worker::{OnStop, Preset, WorkerArgs};
pub(crate) use workload::{WorkloadCommand, WorkloadStore};

/// Divide partitions of work among workers: fairly, with few moves, one owner each
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
    /// Show what a change of workers would move, before it is done
    #[command(
        long_about = help::PLAN,
        after_long_help = help::PLAN_EXAMPLES,
        override_usage = "divvy plan --workers <WORKERS> --partitions <PARTITIONS> [OPTIONS]\n       \
            divvy plan --previous <@FILE> [OPTIONS]"
    )]
    Plan(PlanArgs),
    /// Show the ranking behind the place of one partition
    #[command(
        long_about = help::EXPLAIN,
        after_long_help = help::EXPLAIN_EXAMPLES,
        override_usage = "divvy explain <PARTITION> --workers <WORKERS> [OPTIONS]"
    )]
    Explain(ExplainArgs),
    /// Take part in a cluster in leader mode, and say what happens
    #[command(long_about = help::WORKER, after_long_help = help::WORKER_EXAMPLES)]
    Worker(WorkerArgs),
    /// Run a command for each partition that it gets, in lease mode
    #[command(long_about = help::AGENT, after_long_help = help::AGENT_EXAMPLES)]
    Agent(AgentArgs),
    /// Show or change the workloads that agents find in a store
    #[command(subcommand, long_about = help::WORKLOAD, after_long_help = help::WORKLOAD_EXAMPLES)]
    Workload(WorkloadCommand),
    /// Show a live cluster: its workers, and who owns what
    #[command(long_about = help::STATUS, after_long_help = help::STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Show a live cluster as it changes
    #[command(long_about = help::TOP, after_long_help = help::TOP_EXAMPLES)]
    Top(TopArgs),
    /// Show the last moves of a partition, and why it is where it is
    #[command(long_about = help::WHY, after_long_help = help::WHY_EXAMPLES)]
    Why(WhyArgs),
    /// Let a worker keep what it has, and give it nothing more
    #[command(long_about = help::CORDON, after_long_help = help::CORDON_EXAMPLES)]
    Cordon(WorkerNameArgs),
    /// Let a worker give up everything, and give it nothing
    #[command(long_about = help::DRAIN, after_long_help = help::CORDON_EXAMPLES)]
    Drain(DrainArgs),
    /// Give a cordoned or drained worker its share again
    #[command(long_about = help::UNCORDON, after_long_help = help::CORDON_EXAMPLES)]
    Uncordon(WorkerNameArgs),
    /// Keep a partition with a worker
    #[command(long_about = help::PIN, after_long_help = help::PIN_EXAMPLES)]
    Pin(PinArgs),
    /// Let a pinned partition go where it belongs
    #[command(long_about = help::UNPIN, after_long_help = help::PIN_EXAMPLES)]
    Unpin(UnpinArgs),
    /// Have the partitions or workloads read anew
    #[command(long_about = help::REFRESH, after_long_help = help::REFRESH_EXAMPLES)]
    Refresh(RefreshArgs),
    /// Become a command that ends with its parent
    #[command(hide = true)]
    RunChild(ChildArgs),
    /// Be a worker of a playground on a real store
    #[command(hide = true)]
    PlayMember(MemberArgs),
    /// End what commands have started, once their agent is gone
    #[command(hide = true)]
    SweepChildren,
    /// Run seeds of the simulator, and print what reproduces a failure
    #[command(
        long_about = help::SIMULATE,
        after_long_help = help::SIMULATE_EXAMPLES,
        override_usage = "divvy simulate [--seeds <N> | --hours <H> | --seed <N>] [OPTIONS]\n       \
            divvy simulate --defects | --figures [OPTIONS]"
    )]
    Simulate(SimulateArgs),
    /// Open a cluster to break, in the browser
    #[command(long_about = help::PLAYGROUND, after_long_help = help::PLAYGROUND_EXAMPLES)]
    Playground(PlaygroundArgs),
    /// Examine a store: server, settings, permissions, clock, latency
    #[command(long_about = help::DOCTOR, after_long_help = help::DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Measure what a cluster's speed depends on, on your own servers
    #[command(subcommand, long_about = help::BENCH, after_long_help = help::BENCH_EXAMPLES)]
    Bench(BenchCommand),
    /// Print a script that completes commands and flags in a shell
    #[command(long_about = help::COMPLETIONS, after_long_help = help::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Say how words that are being typed may go on
    #[command(hide = true)]
    CompleteWords(WordsArgs),
    /// Print the manual page, or write those of all commands
    #[command(long_about = help::MAN, after_long_help = help::MAN_EXAMPLES)]
    Man(ManArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// Keys of an application; one that starts with - goes behind --
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
    /// How a key becomes a number
    #[arg(long, value_name = "SCHEME", default_value_t, value_parser = named::key_scheme())]
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
    /// Print JSON: what --previous reads
    #[arg(long)]
    pub(crate) json: bool,
    /// Print CSV: key, worker and weight, which --previous reads too
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Draw the load of each worker, with the mean, into an SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// List the partitions of each worker, too
    #[arg(long)]
    pub(crate) list: bool,
    /// Show all workers; on a terminal a long table is shortened otherwise
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Print JSON: before, after, and every change with its cause; --previous reads it
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the moves as CSV: partition, from, to, cause and weight
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Draw the load of each worker before and after into an SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// List all changes and not only the first 20
    #[arg(long)]
    pub(crate) list: bool,
    /// Show all workers; on a terminal a long table is shortened otherwise
    #[arg(long)]
    pub(crate) all: bool,
}

/// Which workers there will be.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    /// The workers that there will be: a count, ids with weights, or a file
    #[arg(
        long,
        value_name = "N|ID[=WEIGHT],...|@FILE",
        allow_negative_numbers = true,
        display_order = 5
    )]
    pub(crate) to: Option<String>,
    /// Add N workers, numbered on after the highest number there is, of the usual weight or this, to
    /// the zones with the fewest workers or to these in turn; never to a zone that --remove names
    #[arg(
        long,
        value_name = "N[=WEIGHT][@ZONE,...]",
        allow_negative_numbers = true,
        display_order = 6
    )]
    pub(crate) add: Option<String>,
    /// Remove the workers of these ids, or all of a zone; may be given several times
    #[arg(
        long,
        value_name = "ID|zone:NAME,...",
        allow_hyphen_values = true,
        display_order = 7
    )]
    pub(crate) remove: Vec<String>,
    /// Add as few workers as keep the load of every one at or below this, to zones as --add does; says
    /// whether a narrower --band needs fewer, and whether fewer than there are would be enough
    #[arg(
        long,
        value_name = "LOAD[@ZONE,...]",
        value_parser = fit,
        allow_negative_numbers = true,
        conflicts_with_all = ["to", "add"],
        display_order = 8
    )]
    pub(crate) fit: Option<FitArg>,
}

/// `LOAD[@ZONE,...]`.
#[derive(Debug, Clone)]
pub(crate) struct FitArg {
    pub(crate) load: u64,
    /// Where workers are added, as typed.
    pub(crate) zones: Option<String>,
}

fn fit(text: &str) -> Result<FitArg, divvy::Invalid> {
    let (load, zones) = match text.split_once('@') {
        Some((load, zones)) => (load, Some(zones.to_owned())),
        None => (text, None),
    };
    let load = at_least_one("load")(load)?;
    Ok(FitArg { load, zones })
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The partition, such as default:17
    #[arg(value_name = "PARTITION")]
    pub(crate) partition: String,
    #[command(flatten)]
    pub(crate) placement: PlacementArgs,
    /// Show only the first N workers of the ranking, and the owner [default: 10, with --json all]
    #[arg(long, value_name = "N", value_parser = at_least_one::<usize>("top"), allow_negative_numbers = true)]
    pub(crate) top: Option<usize>,
    /// Print JSON: {"partition", "owner", "why", "method", "ranking": [{"rank", "worker", "load",
    /// ...}]}, and with --previous "today"
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests;
