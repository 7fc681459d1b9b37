//! What may be typed after `divvy bench`.

use std::str::FromStr;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use divvy::Invalid;
use divvy::store::StoreUrl;

use super::help;
use super::store::{StoreArgs, span, typed_store};
use super::whole::whole;
use super::worker::Preset;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure how long partitions are without an owner when workers crash or leave
    #[command(long_about = help::BENCH_FAILOVER, after_long_help = help::BENCH_FAILOVER_EXAMPLES)]
    Failover(FailoverArgs),
    /// Count the messages of partitions that move, and measure how fast they are handled
    #[command(long_about = help::BENCH_MESSAGES, after_long_help = help::BENCH_MESSAGES_EXAMPLES)]
    Messages(MessagesArgs),
    /// Measure compare-and-set, watches and leases on stores
    #[command(long_about = help::BENCH_STORES, after_long_help = help::BENCH_STORES_EXAMPLES)]
    Stores(StoresArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailoverArgs {
    /// The store that workers share, but not memory [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    /// Timings of the workers
    #[arg(long, value_name = "NAME", default_value = "fast")]
    pub(crate) preset: Preset,
    /// How many workers there are [default: 8]
    #[arg(long, value_name = "N", value_parser = whole("workers", 2..=200_u32))]
    workers: Option<u32>,
    /// How many partitions there are
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = whole("partitions", 1..=100_000_u32))]
    pub(crate) partitions: u32,
    /// How many are killed, followers and leaders in turn; a fifth as many are stopped in order
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole("kills", 1..=10_000_u32))]
    pub(crate) kills: u32,
    /// How many workers start at once where starts, memory and sizes are measured [default: as
    /// many as --workers, or 64 without]
    #[arg(long, value_name = "N", value_parser = whole("start workers", 1..=200_u32))]
    start_workers: Option<u32>,
    /// How many partitions those share
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = whole("start partitions", 1..=100_000_u32))]
    pub(crate) start_partitions: u32,
    /// Print JSON: {"preset", "failed_starts", "follower_kill_ms": {"p50", "p99", "max"}, ...}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

impl FailoverArgs {
    pub(crate) fn workers(&self) -> u32 {
        self.workers.unwrap_or(8)
    }

    pub(crate) fn start_workers(&self) -> u32 {
        self.start_workers.or(self.workers).unwrap_or(64)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct MessagesArgs {
    /// The store of messages and workers, a NATS server [default: that of DIVVY_STORE]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Option<StoreUrl>,
    /// When the stream forgets messages
    #[arg(long, value_name = "KIND", default_value = "limits")]
    pub(crate) retention: RetentionName,
    /// How many partitions there are
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole("partitions", 1..=100_000_u32))]
    pub(crate) partitions: u32,
    /// How many messages each partition gets, at least
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole("messages", 1..=100_000_u32))]
    pub(crate) messages: u32,
    /// How many messages are published in a second while workers are at work
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = whole("rate", 1..=100_000_u32))]
    pub(crate) rate: u32,
    /// How many workers there are
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole("workers", 1..=64_u32))]
    pub(crate) workers: u32,
    /// The workers' lease
    #[arg(long, value_name = "SPAN", default_value = "3s", value_parser = span)]
    pub(crate) lease: Duration,
    /// Have workers join, stop, be killed and be paused meanwhile
    #[arg(long)]
    pub(crate) faults: bool,
    /// How often each fault happens
    #[arg(long, value_name = "N", default_value_t = 2, requires = "faults", value_parser = whole("rounds", 1..=1000_u32))]
    pub(crate) rounds: u32,
    /// A command that restarts the server, for --faults; it has to return when that is done
    #[arg(long, value_name = "COMMAND", requires = "faults")]
    pub(crate) restart: Option<String>,
    /// Leave out the comparison with consumers without divvy
    #[arg(long)]
    pub(crate) no_overhead: bool,
    /// Measure instead, for so long, what the consumers of all partitions cost while no message
    /// comes
    #[arg(long, value_name = "SPAN", value_parser = span, conflicts_with = "faults")]
    pub(crate) idle: Option<Duration>,
    /// The server's process on this machine, whose memory and time --idle measures
    #[arg(long, value_name = "PID", requires = "idle", value_parser = whole("server pid", 1..=u32::MAX))]
    pub(crate) server_pid: Option<u32>,
    /// Print JSON: {"published", "processed", "lost", "duplicates", "latency_ms", "overhead", ...}
    #[arg(long)]
    pub(crate) json: bool,
    /// Be one of the workers, with a ledger at this socket
    #[arg(long, hide = true, value_name = "NUMBER:CLUSTER:SOCKET")]
    pub(crate) part: Option<String>,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

/// When a stream forgets messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RetentionName {
    /// By age, count or size
    Limits,
    /// When every consumer has acknowledged them
    Interest,
    /// When one consumer has acknowledged them
    Workqueue,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StoresArgs {
    /// The store to measure; may be given several times [default: that of DIVVY_STORE, or memory
    /// and a new file]
    #[arg(long, value_name = "URL", value_parser = typed_store)]
    pub(crate) store: Vec<StoreUrl>,
    /// How long to measure each load
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span)]
    pub(crate) time: Duration,
    /// How many clients work at once, where it is not one
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = whole("clients", 1..=1000_u32))]
    pub(crate) clients: u32,
    /// How many leases are held and renewed together
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = whole("leases", 1..=100_000_u32))]
    pub(crate) leases: u32,
    /// Time between two renewals of a lease, where that is paced
    #[arg(long, value_name = "SPAN", default_value = "3s", value_parser = span)]
    pub(crate) interval: Duration,
    /// Also run redis-benchmark, if it is installed, with the like of each load
    #[arg(long)]
    pub(crate) peer: bool,
    /// Print JSON: a list of {"store", "load", "per_second", "p50_ms", "p99_ms", "max_ms", ...}
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure so many processes side by side instead, each with its share of the leases: whether
    /// any of them waits longer than the others
    #[arg(long, value_name = "N", value_parser = whole("processes", 1..=64_u32))]
    pub(crate) processes: Option<u32>,
    /// Be one of those processes
    #[arg(long, hide = true, requires = "processes")]
    pub(crate) part: Option<Part>,
    #[command(flatten)]
    pub(crate) reach: StoreArgs,
}

/// One of several processes that measure a store together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Which of the stores.
    pub(crate) store: usize,
    /// Which of the processes.
    pub(crate) number: u32,
}

impl FromStr for Part {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parts = text.split_once(':');
        let part = parts.and_then(|(store, number)| {
            Some(Self {
                store: store.parse().ok()?,
                number: number.parse().ok()?,
            })
        });
        part.ok_or_else(|| Invalid::new("part", text, "must be STORE:PROCESS"))
    }
}
