//! What the consumers of many partitions cost while no message comes.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::Grant;
use divvy::store::Token;
use divvy::subscriptions::{Failure, Handler, Message, Subscriptions};
use serde::Serialize;
use tokio::time::sleep;

use super::place::Place;
use super::report::write_named;
use crate::args::MessagesArgs;
use crate::commands::bench::failover::Spread;
use crate::commands::write_json;
use crate::failure::Failure as Failed;
use crate::terminal::Terminal;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(300);
/// Messages whose time is taken, at most.
const SAMPLE: usize = 1000;
/// What the stream of this measurement is called.
pub(super) const KIND: &str = "idle";

/// What it came to. The server's figures are there when its process is known.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    consumers: u32,
    /// Making all of them.
    create_seconds: f64,
    /// Until all of them were asked for messages.
    assign_seconds: f64,
    /// The same when they were there already, after giving all of them back.
    move_seconds: f64,
    server_memory_before: Option<u64>,
    server_memory_after: Option<u64>,
    /// Share of one core, without a message.
    server_idle_core_share: Option<f64>,
    worker_memory: Option<u64>,
    worker_idle_core_share: Option<f64>,
    /// From publishing to the handler, one message at a time.
    latency_ms: Spread,
}

impl Cost {
    pub(super) fn write(&self, json: bool, out: &mut dyn Write) -> Result<(), Failed> {
        if json {
            return write_json(out, self);
        }
        let megabytes = |bytes: Option<u64>| match bytes {
            Some(bytes) => format!("{:.0} MB", bytes as f64 / 1e6),
            None => "unknown".to_owned(),
        };
        let share = |share: Option<f64>| match share {
            Some(share) => format!("{:.1} % of a core", share * 100.0),
            None => "unknown".to_owned(),
        };
        let rows = [
            ("consumers", self.consumers.to_string()),
            ("made in", format!("{:.1} s", self.create_seconds)),
            ("assigned in", format!("{:.1} s", self.assign_seconds)),
            (
                "given back and assigned again in",
                format!("{:.1} s", self.move_seconds),
            ),
            (
                "the server's memory before",
                megabytes(self.server_memory_before),
            ),
            (
                "the server's memory with them",
                megabytes(self.server_memory_after),
            ),
            ("the server when idle", share(self.server_idle_core_share)),
            ("the worker's memory", megabytes(self.worker_memory)),
            ("the worker when idle", share(self.worker_idle_core_share)),
            (
                "from publishing to the handler, p50",
                format!("{:.2} ms", self.latency_ms.p50),
            ),
            (
                "from publishing to the handler, p99",
                format!("{:.2} ms", self.latency_ms.p99),
            ),
        ];
        write_named(out, &Terminal::of_stdout(), 38, &rows)
    }
}

pub(super) async fn measure(
    place: &Place,
    args: &MessagesArgs,
    idle: Duration,
) -> anyhow::Result<Cost> {
    let server_memory_before = args.server_pid.map(memory).transpose()?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = Noting(Arc::clone(&seen));
    let settings = place.subscription(KIND);
    let subscriptions = Subscriptions::open(&place.url, &place.reach, settings, handler).await?;
    let all = place.all()?;
    let begun = Instant::now();
    subscriptions.ensure(&all).await?;
    let create_seconds = begun.elapsed().as_secs_f64();
    let assign_seconds = assign(&subscriptions, all.as_slice(), 1).await?;
    let server_memory_after = args.server_pid.map(memory).transpose()?;
    let own = std::process::id();
    let before = (args.server_pid.map(time).transpose()?, time(own)?);
    let resting = Instant::now();
    sleep(idle).await;
    let rested = resting.elapsed().as_secs_f64();
    let after = (args.server_pid.map(time).transpose()?, time(own)?);
    let share = |from: Duration, to: Duration| (to.saturating_sub(from)).as_secs_f64() / rested;
    let latency_ms = latency(place, &subscriptions, all.as_slice(), &seen).await?;
    let worker_memory = Some(memory(own)?);
    let begun = Instant::now();
    subscriptions.clone().close().await;
    assign(&subscriptions, all.as_slice(), 2).await?;
    let move_seconds = begun.elapsed().as_secs_f64();
    subscriptions.close().await;
    Ok(Cost {
        consumers: place.partitions,
        create_seconds,
        assign_seconds,
        move_seconds,
        server_memory_before,
        server_memory_after,
        server_idle_core_share: before.0.zip(after.0).map(|(from, to)| share(from, to)),
        worker_memory,
        worker_idle_core_share: Some(share(before.1, after.1)),
        latency_ms,
    })
}

/// Assigns all, and waits until each is asked for messages.
async fn assign(
    subscriptions: &Subscriptions,
    partitions: &[Partition],
    token: i64,
) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let token = Token::new(token).context("tokens are above 0")?;
    for partition in partitions {
        let grant = Grant::standing(partition.clone(), token);
        subscriptions.assign(partition, grant).await?;
    }
    while !subscriptions
        .health()
        .iter()
        .all(|health| health.is_consuming)
    {
        if begun.elapsed() > PATIENCE {
            return Err(anyhow!(
                "not within {PATIENCE:?}: every partition is consumed"
            ));
        }
        sleep(LOOK).await;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Publishes to some partitions, one after another, and waits for each.
async fn latency(
    place: &Place,
    subscriptions: &Subscriptions,
    partitions: &[Partition],
    seen: &Mutex<Vec<Instant>>,
) -> anyhow::Result<Spread> {
    let client = place.client().await?;
    let step = partitions.len().div_ceil(SAMPLE);
    let mut times = Vec::new();
    for partition in partitions.iter().step_by(step) {
        let subject = subscriptions.settings().subject(partition)?;
        let begun = Instant::now();
        client.publish(subject, "".into()).await?;
        client.flush().await?;
        let ended = loop {
            let seen = seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(times.len())
                .copied();
            match seen {
                Some(ended) => break ended,
                None if begun.elapsed() > PATIENCE => {
                    return Err(anyhow!("a message was not handled"));
                }
                None => sleep(Duration::from_millis(1)).await,
            }
        };
        times.push(ended - begun);
    }
    Ok(Spread::of(times))
}

struct Noting(Arc<Mutex<Vec<Instant>>>);

#[async_trait]
impl Handler for Noting {
    async fn handle(&self, _: &Message, _: &Partition, _: &Grant) -> Result<(), Failure> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(Instant::now());
        Ok(())
    }
}

/// Memory that is a process's own, in bytes.
fn memory(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilobytes.with_context(|| format!("{path} has no RssAnon"))? * 1024)
}

/// How long a process has had a processor.
fn time(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name in brackets may hold anything.
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest);
    let mut fields = rest.unwrap_or_default().split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks().zip(ticks()).map(|(user, system)| user + system);
    let per_second = rustix::param::clock_ticks_per_second();
    let ticks = ticks.with_context(|| format!("{path} has no times"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}
