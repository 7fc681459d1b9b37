//! `divvy bench failover`: how long partitions are without an owner when
//! workers crash or leave.

mod board;
mod calculation;
mod crew;
mod ground;
mod memory;
mod report;
mod start;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use divvy::manager::Settings;
use divvy::store::{StoreKind, StoreSettings, StoreUrl};

use self::calculation::Calculation;
use self::crew::Crew;
use self::ground::Ground;
use self::memory::Memory;
pub(super) use self::report::Spread;
use self::report::{Bound, Figures};
use self::start::Start;
use crate::args::{FailoverArgs, Preset};
use crate::commands::worker::store_of;
use crate::commands::write_json;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::terminal::Terminal;

/// What a hand-over may take beyond the lease.
const BEYOND_LEASE_MS: f64 = 1_000.0;
/// With the preset `fast`, all of it.
const FAST_MS: f64 = 1_000.0;

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
        true => write_json(out, &figures)?,
        false => figures.write_table(out, &Terminal::of_stdout())?,
    }
    match figures.missed() {
        missed if missed.is_empty() => Ok(()),
        missed => Err(Failure::Failed(anyhow!("missed: {}", missed.join("; ")))),
    }
}

/// What was measured beside what workers said.
struct Run {
    store: String,
    calculation: Calculation,
    start: Start,
    memory: Option<Memory>,
    life: Life,
}

/// What became of a cluster whose workers were killed and stopped.
struct Life {
    follower: Vec<Duration>,
    leader: Vec<Duration>,
    graceful: Vec<Duration>,
}

impl Life {
    fn measure(args: &FailoverArgs, crew: &mut Crew) -> anyhow::Result<Self> {
        gather(crew, args.workers(), args.partitions)?;
        let (follower, leader) = kills(args, crew)?;
        let graceful = stops(args, crew)?;
        crew.end()?;
        Ok(Self {
            follower,
            leader,
            graceful,
        })
    }
}

fn measure(
    args: &FailoverArgs,
    store: &StoreUrl,
    reach: &StoreSettings,
) -> anyhow::Result<Figures> {
    // First: what was allocated before is used again.
    let calculation = Calculation::measure(args.start_workers(), args.start_partitions)?;
    let ground = Ground::new(store)?;
    ground.check_empty(reach)?;
    let start = Start::measure(args, &ground, reach)?;
    let memory = Memory::measure(args, &ground, reach, &start)?;
    let opened = ground.open(reach)?;
    let mut crew = crew(args, &ground, reach, args.partitions);
    let life = Life::measure(args, &mut crew);
    crew.kill_all();
    let run = Run {
        life: ground.cleared(reach, life)?,
        store: opened.describe(),
        calculation,
        start,
        memory,
    };
    figures(args, &crew, run)
}

fn crew(args: &FailoverArgs, ground: &Ground<'_>, reach: &StoreSettings, partitions: u32) -> Crew {
    // Where no flag names it, workers find it where this program did.
    let address = args.store.as_ref().map(ToString::to_string);
    let arguments = arguments(args, reach, partitions);
    Crew::new(address, arguments, ground.interrupted())
}

/// Starts workers all at once, and waits until they own everything.
fn gather(crew: &mut Crew, workers: u32, partitions: u32) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    for _ in 0..workers {
        crew.start()?;
    }
    crew.until("every partition has an owner", |board| {
        board.is_owned(partitions as usize).then_some(())
    })?;
    Ok(begun.elapsed())
}

fn figures(args: &FailoverArgs, crew: &Crew, run: Run) -> anyhow::Result<Figures> {
    let board = crew.board();
    let lease = settings(args).leader.heartbeat_ttl;
    let (mut two_owners, mut duplicate_ids) = (Duration::ZERO, 0);
    for history in [&board.history, &run.start.history] {
        if let Err(broken) = history.check(lease) {
            return Err(anyhow!("an invariant is broken: {broken}"));
        }
        two_owners += history.two_owners();
        duplicate_ids += history.duplicate_ids();
    }
    let claims = board.claims.iter().chain(&run.start.claims).copied();
    let elections = board.elections.iter().chain(&run.start.elections).copied();
    let (claim, election) = (
        Spread::of(claims.collect()),
        Spread::of(elections.collect()),
    );
    let (follower, leader) = (
        Spread::of(run.life.follower.clone()),
        Spread::of(run.life.leader.clone()),
    );
    let graceful = Spread::of(run.life.graceful.clone());
    let handed_on = match args.preset {
        Preset::Fast => FAST_MS,
        Preset::Default | Preset::Calm => ms(lease) + BEYOND_LEASE_MS,
    };
    let mut bounds = vec![
        Bound::new("a follower is killed, p99 ms", follower.p99, handed_on),
        Bound::new("the leader is killed, p99 ms", leader.p99, handed_on),
        Bound::new("a worker is stopped, p99 ms", graceful.p99, 1_000.0),
        Bound::new("claim of an id, ms", claim.max, 1_000.0),
        Bound::new("election, ms", election.max, 2_000.0),
    ];
    bounds.extend(run.start.bounds());
    bounds.extend(run.calculation.bounds());
    bounds.extend(run.memory.iter().flat_map(Memory::bounds));
    Ok(Figures {
        preset: preset_name(args.preset),
        store: run.store,
        workers: args.workers(),
        partitions: args.partitions,
        start_workers: args.start_workers(),
        start_partitions: args.start_partitions,
        failed_starts: crew.failed_starts + run.start.failed,
        cold_start_ms: ms(run.start.took),
        follower_kill_ms: follower,
        leader_kill_ms: leader,
        graceful_stop_ms: graceful,
        claim_ms: claim,
        two_owner_partition_seconds: two_owners.as_secs_f64(),
        duplicate_ids,
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
    let all = args.partitions as usize;
    crew.until("everybody owns something", |board| {
        let workers = board
            .members
            .iter()
            .filter(|member| member.is_there)
            .count();
        let busy = board
            .members
            .iter()
            .filter(|member| !member.owned.is_empty())
            .count();
        let is_led = board.members.iter().any(|member| member.leads);
        (board.is_owned(all) && busy >= workers.min(all) && is_led).then_some(())
    })?;
    crew.find(leads).context("there is no worker to end")
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
fn arguments(args: &FailoverArgs, reach: &StoreSettings, partitions: u32) -> Vec<String> {
    let mut arguments = vec![
        "--preset".to_owned(),
        preset_name(args.preset).to_owned(),
        "--partitions".to_owned(),
        format!("p:{partitions}"),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn workers_that_end_by_themselves_say_why() {
        // This program is the test's own, which knows no such flags.
        let mut crew = Crew::new(None, Vec::new(), Arc::default());
        for _ in 0..4 {
            crew.start().unwrap();
        }
        let failed = crew.until("nothing", |_| None::<()>).unwrap_err();
        let told = failed.to_string();
        assert!(told.starts_with("4 workers ended by themselves"), "{told}");
        assert!(told.contains("'deadlines'"), "{told}");
    }
}
