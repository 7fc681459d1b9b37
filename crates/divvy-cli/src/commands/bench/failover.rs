//! `divvy bench failover`: how long partitions are without an owner when
//! workers crash or leave.

mod board;
mod crew;
mod report;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use divvy::manager::Settings;
use divvy::store::{KeyValue, Prefix, StoreKind, StoreSettings, StoreUrl, open_key_value};
use divvy::{Partitions, Strategy as _, WeightedConsistentHash, Workers};

use self::crew::Crew;
use self::report::{Bound, Figures, Spread};
use crate::args::{FailoverArgs, Preset};
use crate::commands::worker::store_of;
use crate::commands::write_json;
use crate::failure::Failure;
use crate::spinner::Spinner;

/// The size that the bounds of a calculation are given for.
const CALCULATION_WORKERS: usize = 64;
const CALCULATION_PARTITIONS: u32 = 5_000;

pub(crate) fn run(args: &FailoverArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let store = store_of(args.store.as_ref())?;
    if store.kind() == StoreKind::Memory {
        let rule = "is of one process; workers are killed, so each is its own";
        return Err(Failure::usage("store", store, rule));
    }
    let mut reach = args.reach.settings()?;
    if reach.cluster == "default" {
        // Nobody else's, and empty.
        reach.cluster = format!("divvy-bench-{:08x}", fastrand::u32(..));
    }
    let spinner = Spinner::start("measuring");
    let figures = measure(args, &store, &reach).map_err(Failure::Failed)?;
    drop(spinner);
    match args.json {
        true => write_json(out, &figures),
        false => figures.write_table(out),
    }
}

/// What was measured beside what workers said.
struct Run {
    cold_start: Duration,
    memory: Vec<u64>,
    follower: Vec<Duration>,
    leader: Vec<Duration>,
    graceful: Vec<Duration>,
    heartbeat_bytes: usize,
    map_bytes: usize,
}

fn measure(
    args: &FailoverArgs,
    store: &StoreUrl,
    reach: &StoreSettings,
) -> anyhow::Result<Figures> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no threads")?;
    let opened = runtime
        .block_on(open_key_value(store, reach))
        .with_context(|| store.to_string())?;
    // Where no flag names it, workers find it where this program did.
    let address = args.store.as_ref().map(ToString::to_string);
    let mut crew = Crew::new(address, arguments(args, reach));
    let begun = Instant::now();
    for _ in 0..args.workers {
        crew.start()?;
    }
    let all = args.partitions as usize;
    crew.until("every partition has an owner", |board| {
        (board.owned() == all).then_some(())
    })?;
    let cold_start = begun.elapsed();
    let memory = crew.memory();
    let (follower, leader) = kills(args, &mut crew)?;
    let graceful = stops(args, &mut crew)?;
    let (heartbeat_bytes, map_bytes) = runtime.block_on(sizes(&*opened))?;
    crew.end()?;
    runtime.block_on(clear(&*opened))?;
    let run = Run {
        cold_start,
        memory,
        follower,
        leader,
        graceful,
        heartbeat_bytes,
        map_bytes,
    };
    figures(args, opened.describe(), &crew, run)
}

fn figures(args: &FailoverArgs, store: String, crew: &Crew, run: Run) -> anyhow::Result<Figures> {
    let board = crew.board();
    let history = &board.history;
    if let Err(broken) = history.check(settings(args).leader.heartbeat_ttl) {
        return Err(anyhow!("an invariant is broken: {broken}"));
    }
    let claim = Spread::of(board.claims.clone());
    let election = Spread::of(board.elections.clone());
    let calculated = calculation()?;
    let row = |name, measured, bound| Bound {
        name,
        measured,
        bound,
    };
    let mut bounds = vec![
        row("claim, ms", claim.max, 1_000.0),
        row("election, ms", election.max, 2_000.0),
        row("first assignment, ms", ms(run.cold_start), 5_000.0),
        row("calculation, ms", ms(calculated), 100.0),
        row("heartbeat, bytes", run.heartbeat_bytes as f64, 100.0),
        row("map, bytes", run.map_bytes as f64, 50_000.0),
    ];
    if let Some(most) = run.memory.iter().max() {
        // What a worker takes, and 200 bytes for each of all partitions.
        let bound = 5e6 + 200.0 * f64::from(args.partitions);
        bounds.push(row("memory of a worker, bytes", *most as f64, bound));
    }
    Ok(Figures {
        preset: preset_name(args.preset),
        store,
        workers: args.workers,
        partitions: args.partitions,
        failed_starts: crew.failed_starts,
        cold_start_ms: ms(run.cold_start),
        follower_kill_ms: Spread::of(run.follower),
        leader_kill_ms: Spread::of(run.leader),
        graceful_stop_ms: Spread::of(run.graceful),
        claim_ms: claim,
        two_owner_partition_seconds: history.two_owners().as_secs_f64(),
        duplicate_ids: history.duplicate_ids(),
        bounds,
    })
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Kills followers and leaders in turn, each replaced before the next.
fn kills(args: &FailoverArgs, crew: &mut Crew) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut follower, mut leader) = (Vec::new(), Vec::new());
    for round in 0..args.kills {
        let leads = round % 2 == 1;
        let victim = settled(args, crew, leads)?;
        let owned = crew.owned_by(victim);
        let at = crew.kill(victim)?;
        let last = crew.until("what a killed worker had is owned again", |board| {
            board.all_started(&owned, at)
        })?;
        let times = if leads { &mut leader } else { &mut follower };
        times.push(last.since(at));
        crew.start()?;
    }
    Ok((follower, leader))
}

/// Stops workers in order, each replaced before the next.
fn stops(args: &FailoverArgs, crew: &mut Crew) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..args.kills.div_ceil(5) {
        let victim = settled(args, crew, false)?;
        let owned = crew.owned_by(victim);
        let at = crew.stop(victim)?;
        let last = crew.until("what a stopped worker had is owned again", |board| {
            board.all_started(&owned, at)
        })?;
        times.push(last.since(at));
        crew.start()?;
    }
    Ok(times)
}

/// Waits until everything is owned, and everybody owns something; gives one
/// that leads or not.
fn settled(args: &FailoverArgs, crew: &mut Crew, leads: bool) -> anyhow::Result<usize> {
    let (all, workers) = (args.partitions as usize, args.workers as usize);
    crew.until("everybody owns something", |board| {
        let busy = board
            .members
            .iter()
            .filter(|member| !member.owned.is_empty())
            .count();
        let is_led = board.members.iter().any(|member| member.leads);
        (board.owned() == all && busy >= workers.min(all) && is_led).then_some(())
    })?;
    crew.find(leads).context("there is no worker to end")
}

/// How large records are: the largest of a worker, and the root with its parts.
async fn sizes(store: &dyn KeyValue) -> anyhow::Result<(usize, usize)> {
    let (mut heartbeat, mut map) = (0, 0);
    for entry in store.list(&Prefix::ALL).await? {
        let (key, bytes) = (entry.key.as_str(), entry.value.len());
        if key.starts_with("w.") {
            heartbeat = heartbeat.max(bytes);
        } else if key == "root" || key.starts_with("c.") {
            map += bytes;
        }
    }
    Ok((heartbeat, map))
}

/// Deletes what the run has written.
async fn clear(store: &dyn KeyValue) -> anyhow::Result<()> {
    for entry in store.list(&Prefix::ALL).await? {
        // Nobody else writes there any more.
        let _outcome = store.delete(&entry.key, entry.revision).await?;
    }
    Ok(())
}

/// How long the default strategy takes at the size that bounds are given for.
fn calculation() -> anyhow::Result<Duration> {
    let workers = Workers::numbered("worker", CALCULATION_WORKERS)?;
    let partitions = Partitions::shards([("p", CALCULATION_PARTITIONS)])?;
    let begun = Instant::now();
    WeightedConsistentHash::new().assign(&workers, &partitions, None)?;
    Ok(begun.elapsed())
}

fn settings(args: &FailoverArgs) -> Settings {
    match args.preset {
        Preset::Fast => Settings::fast(),
        Preset::Default => Settings::default(),
        Preset::Calm => Settings::calm(),
    }
}

const fn preset_name(preset: Preset) -> &'static str {
    match preset {
        Preset::Fast => "fast",
        Preset::Default => "default",
        Preset::Calm => "calm",
    }
}

/// What every worker is started with.
fn arguments(args: &FailoverArgs, reach: &StoreSettings) -> Vec<String> {
    let mut arguments = vec![
        "--preset".to_owned(),
        preset_name(args.preset).to_owned(),
        "--partitions".to_owned(),
        format!("p:{}", args.partitions),
        "--strategy".to_owned(),
        "balanced".to_owned(),
        "--cluster".to_owned(),
        reach.cluster.clone(),
        "--bucket".to_owned(),
        reach.bucket.clone(),
        "--replicas".to_owned(),
        reach.replicas.to_string(),
    ];
    arguments.extend(args.reach.login_flags());
    arguments
}
