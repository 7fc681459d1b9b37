//! What may be typed after `divvy playground`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum as _;
use divvy::store::StoreUrl;
use divvy::{Invalid, StrategyName};
use divvy_playground::{PARTITIONS_MAX, SEED_MAX, WORKERS_MAX};

use super::Mode;
use super::listen::address;
use super::named::Named;
use super::simulate::fault;
use super::store::{StoreArgs, span, typed_store};
use super::whole::whole;

#[derive(Debug, clap::Args)]
pub(crate) struct PlaygroundArgs {
    /// Answer HTTP there, with the page; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, default_value = "127.0.0.1:7433")]
    pub(crate) listen: SocketAddr,
    /// A file with the token that clients have to send, where others than this machine can reach it
    #[arg(long, value_name = "FILE")]
    pub(crate) listen_token_file: Option<PathBuf>,
    /// Only look at the live cluster in a store: nothing of it can be changed from the page
    #[arg(long)]
    #[arg(conflicts_with_all = ["workers", "partitions", "preset", "strategy", "overlap", "seed"])]
    #[arg(conflicts_with_all = ["scenario", "replay", "headless", "list", "json"])]
    pub(crate) observe: bool,
    /// The store to start real workers on, each a process, by real time; with --observe, that of the
    /// cluster to look at [default: a simulated world; with --observe, that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    #[arg(conflicts_with_all = ["seed", "scenario", "replay", "headless", "list", "json"])]
    pub(crate) store: Option<StoreUrl>,
    /// Time between two looks at a live cluster [default: 500ms; 200ms at one of its own]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) interval: Option<Duration>,
    /// Which kind of coordination [default: leader; with --observe, the one that is found]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// How many workers there are at first, 1 to 500, on a real store 1 to 32 [default: 8]
    #[arg(long, value_name = "N", value_parser = whole("workers", 1..=WORKERS_MAX))]
    pub(crate) workers: Option<usize>,
    /// How many partitions there are at first, 1 to 20000 [default: 256]
    #[arg(long, value_name = "N", value_parser = whole("partitions", 1..=PARTITIONS_MAX))]
    pub(crate) partitions: Option<usize>,
    /// Timings; calm is of leader mode, rendezgo of lease mode [default: fast]
    #[arg(long, value_name = "NAME", value_parser = presets())]
    pub(crate) preset: Option<String>,
    /// How partitions are placed, in leader mode [default: balanced]
    #[arg(long, value_name = "NAME", value_parser = strategies())]
    pub(crate) strategy: Option<StrategyName>,
    /// Let workers that cannot reach the store go on beside those that take over, in leader mode
    #[arg(long)]
    pub(crate) overlap: bool,
    /// Seed of the world [default: 7, or that of the scenario]
    #[arg(long, value_name = "N", value_parser = whole("seed", 0..=SEED_MAX))]
    pub(crate) seed: Option<u64>,
    /// Start this scenario: the name of one that is built in, or a YAML file
    #[arg(long, value_name = "NAME|FILE")]
    #[arg(conflicts_with_all = ["mode", "workers", "partitions", "preset", "strategy", "overlap"])]
    pub(crate) scenario: Option<String>,
    /// Watch a seed of `divvy simulate` run its course, such as leader:4711
    #[arg(long, value_name = "MODE:SEED", value_parser = replayed)]
    #[arg(conflicts_with_all = ["mode", "workers", "partitions", "preset", "strategy", "overlap"])]
    #[arg(conflicts_with_all = ["scenario", "headless", "seed"])]
    pub(crate) replay: Option<(Mode, u64)>,
    /// Leave these faults out of the replayed world, by their number in the trace
    #[arg(long, value_name = "N,...", requires = "replay", value_delimiter = ',', value_parser = fault())]
    pub(crate) without: Vec<usize>,
    /// Plant this mistake into every member of the replayed world
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub(crate) defect: Option<String>,
    /// Run the scenario as fast as it goes, without a page; the exit code is 1 if its goal is missed
    #[arg(long, requires = "scenario")]
    pub(crate) headless: bool,
    /// List the scenarios that are built in
    #[arg(long, conflicts_with_all = ["scenario", "headless"])]
    pub(crate) list: bool,
    /// Print JSON: what came of --headless, or the scenarios of --list
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

/// A worker of a playground on a real store, as a process.
#[derive(Debug, clap::Args)]
pub(crate) struct MemberArgs {
    /// The process that started it
    #[arg(long)]
    pub(crate) parent: u32,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

/// The timings that a world can have, of either mode.
fn presets() -> Named<String, Invalid> {
    Named::new(preset_names(), |text| {
        let rule = || format!("must be one of {}", preset_names().join(", "));
        let known = preset_names().contains(&text).then(|| text.to_owned());
        known.ok_or_else(|| Invalid::new("preset", text, rule()))
    })
}

fn preset_names() -> Vec<&'static str> {
    let mut names = divvy_playground::presets(divvy_sim::Mode::Leader);
    for name in divvy_playground::presets(divvy_sim::Mode::Lease) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The strategies that a world can have.
fn strategies() -> Named<StrategyName, Invalid> {
    Named::new(
        divvy_playground::strategies(divvy_sim::Mode::Leader),
        strategy,
    )
}

fn strategy(text: &str) -> Result<StrategyName, Invalid> {
    let known = divvy_playground::strategies(divvy_sim::Mode::Leader);
    let named = known.contains(&text).then(|| text.parse().ok()).flatten();
    let rule = || format!("must be one of {}", known.join(", "));
    named.ok_or_else(|| Invalid::new("strategy", text, rule()))
}

fn replayed(text: &str) -> Result<(Mode, u64), Invalid> {
    let read = || {
        let (mode, seed) = text.split_once(':')?;
        Some((Mode::from_str(mode, false).ok()?, seed.parse().ok()?))
    };
    let rule = "must be a mode and a seed, such as leader:4711";
    read().ok_or_else(|| Invalid::new("replay", text, rule))
}
