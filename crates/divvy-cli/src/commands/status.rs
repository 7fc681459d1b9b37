//! `divvy status`: a live cluster, once.

use std::io::{self, Write};

use divvy::observer::{Mode, Snapshot, WorkerLife, WorkerStatus};
use serde::Serialize;

use super::live;
use crate::args::StatusArgs;
use crate::commands::write_json;
use crate::condensed::condensed;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone, counted};
use crate::terminal::{Terminal, shortened};

/// Most characters of wishes of one kind.
const WISHES_CHARS_MAX: usize = 200;
/// Fewest characters of the partitions of a worker that are worth their column.
const HAS_CHARS_MIN: usize = 12;
/// What a narrow terminal does without, the first first.
const SPARE: [&str; 6] = ["weight", "share", "zone", "instance", "partitions", "state"];

/// A snapshot as it is printed.
#[derive(Serialize)]
struct Shown<'a> {
    format: u32,
    cluster: &'a str,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    unowned: usize,
    misplaced: usize,
    foreign: usize,
}

pub(crate) fn run(args: &StatusArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let (snapshot, absent) = live::block_on(async {
        let mut observer = live::open(&args.at).await?;
        let _spinner = Spinner::start("waiting for heartbeats");
        let looked = match args.no_wait {
            true => observer.look().await,
            false => observer.look_long().await,
        };
        let mut snapshot = looked.map_err(live::refused)?;
        if let Err(error) = observer.moves().await {
            snapshot.problems.push(error.to_string());
        }
        let absent = live::absence(&args.at, &snapshot).await;
        Ok((snapshot, absent))
    })?;
    let cluster = &args.at.reach.cluster;
    if args.json {
        let shown = Shown {
            format: 1,
            cluster,
            unowned: unowned(&snapshot),
            misplaced: misplaced(&snapshot),
            foreign: foreign(&snapshot),
            snapshot: &snapshot,
        };
        write_json(out, &shown)?;
        out.flush().map_err(Failure::output)?;
        return absent.map_or(Ok(()), Err);
    }
    if let Some(absent) = absent {
        return Err(absent);
    }
    let terminal = Terminal::of_stdout();
    write_head(&snapshot, cluster, out).map_err(Failure::output)?;
    workers(&snapshot)
        .fitted(&terminal, &SPARE, Some(HAS_CHARS_MIN))
        .write(out, terminal.colour)
        .map_err(Failure::output)?;
    if args.list {
        writeln!(out).map_err(Failure::output)?;
        partitions(&snapshot)
            .fitted(&terminal, &["token"], None)
            .write(out, terminal.colour)
            .map_err(Failure::output)?;
    }
    write_foot(&snapshot, out).map_err(Failure::output)
}

/// Partitions that nobody works on: without an owner, or with one that is gone.
pub(super) fn unowned(snapshot: &Snapshot) -> usize {
    let partitions = snapshot.partitions.iter();
    partitions
        .filter(|p| p.owner.is_none() || p.orphaned)
        .count()
}

/// Partitions whose owner is not the one that should have them, or that are on
/// their way.
pub(super) fn misplaced(snapshot: &Snapshot) -> usize {
    let partitions = snapshot.partitions.iter();
    partitions
        .filter(|p| {
            let is_elsewhere = p.desired.is_some() && p.owner != p.desired;
            let is_here = p.owner.is_some() && !p.orphaned && !p.foreign;
            (p.asked_back || is_elsewhere) && is_here
        })
        .count()
}

/// Partitions that workers of other clusters hold.
fn foreign(snapshot: &Snapshot) -> usize {
    let partitions = snapshot.partitions.iter();
    partitions.filter(|partition| partition.foreign).count()
}

/// Which cluster this is, and how quickly its store answers.
pub(super) fn headline(snapshot: &Snapshot, cluster: &str) -> String {
    let took = snapshot.took.as_secs_f64() * 1000.0;
    let mode = snapshot.mode;
    let mut line = format!("cluster {cluster} in {mode} mode, {}", snapshot.store);
    line += &format!(", answered in {took:.1} ms");
    if let (Some(version), Some(lifecycle)) = (&snapshot.version, snapshot.lifecycle) {
        line += &format!("\nassignment {version}, {}", lifecycle.replace('_', " "));
    }
    if snapshot.quarantine {
        line += "\nthe store is new, has restarted or lost its data: nothing is granted until ";
        line += match snapshot.mode {
            Mode::Leader => "all have stopped and the longest lease has expired (quarantine)",
            Mode::Lease => "leases that it may have forgotten have expired (quarantine)",
        };
    }
    line
}

fn write_head(snapshot: &Snapshot, cluster: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", headline(snapshot, cluster))
}

/// What a worker is, in words.
pub(super) fn state_of(worker: &WorkerStatus) -> String {
    let mut words = vec![worker.life.as_str()];
    words.extend(worker.leads.then_some("leads"));
    words.extend((!worker.healthy).then_some("unhealthy"));
    words.extend(worker.cordoned.then_some("cordoned"));
    words.extend(worker.drained.then_some("drained"));
    words.join(", ")
}

fn workers(snapshot: &Snapshot) -> Table {
    let mut headings = vec![
        ("worker", Align::Left),
        ("state", Align::Left),
        ("weight", Align::Right),
        ("owns", Align::Right),
        ("share", Align::Right),
    ];
    let has_zones = snapshot.workers.iter().any(|worker| worker.zone.is_some());
    if has_zones {
        headings.push(("zone", Align::Left));
    }
    if snapshot.mode == Mode::Leader {
        headings.push(("instance", Align::Left));
    }
    headings.push(("partitions", Align::Left));
    let named = |(name, align): (&str, Align)| (name.to_owned(), align);
    let mut table = Table::new(headings.into_iter().map(named));
    let all = snapshot.partitions.len().max(1) as f64;
    for worker in &snapshot.workers {
        // Who left long ago and has nothing is history.
        let is_gone = matches!(worker.life, WorkerLife::Left | WorkerLife::Fenced);
        if is_gone && worker.owned == 0 {
            continue;
        }
        let mut cells = vec![
            worker.name.clone(),
            state_of(worker),
            worker.weight.to_string(),
            worker.owned.to_string(),
            format!("{:.1} %", worker.owned as f64 / all * 100.0),
        ];
        if has_zones {
            cells.push(worker.zone.clone().unwrap_or_default());
        }
        if snapshot.mode == Mode::Leader {
            cells.push(worker.instance.clone().unwrap_or_default());
        }
        let own = snapshot
            .partitions
            .iter()
            .filter(|p| p.owner.as_deref() == Some(worker.name.as_str()));
        let own = condensed(own.map(|partition| partition.name.as_str()));
        cells.push(own);
        let tone = match worker.life.is_here() {
            true => Tone::Plain,
            false => Tone::Faint,
        };
        table.push(tone, cells);
    }
    table
}

fn partitions(snapshot: &Snapshot) -> Table {
    let headings = ["partition", "owner", "token", "remark"];
    let mut table = Table::new(headings.map(|name| (name.to_owned(), Align::Left)));
    for partition in &snapshot.partitions {
        let mut remarks = Vec::new();
        if partition.asked_back {
            remarks.push("asked back".to_owned());
        }
        if partition.orphaned {
            remarks.push("its owner is gone".to_owned());
        }
        if partition.foreign {
            remarks.push("its owner is not of this cluster".to_owned());
        }
        match (&partition.desired, &partition.owner) {
            (Some(desired), Some(owner)) if desired != owner => {
                let why = partition.misaligned.map(|why| format!(" ({why})"));
                remarks.push(format!(
                    "should be with {desired}{}",
                    why.unwrap_or_default()
                ));
            }
            (_, None) => remarks.push(match partition.misaligned {
                Some("cap") => "nobody owns it: all have as many as they may (cap)".to_owned(),
                Some("quarantine") => {
                    "nobody owns it: the store grants nothing yet (quarantine)".to_owned()
                }
                Some("stop_not_confirmed") => {
                    "nobody owns it: its stop was not confirmed (stop_not_confirmed)".to_owned()
                }
                _ => "nobody owns it".to_owned(),
            }),
            (_, Some(_)) if partition.misaligned == Some("stop_not_confirmed") => {
                remarks.push("its stop was not confirmed (stop_not_confirmed)".to_owned());
            }
            _ => {}
        }
        if let Some(pinned) = &partition.pinned {
            remarks.push(format!("pinned to {pinned}"));
        }
        let token = partition.token.map(|token| token.to_string());
        table.push(
            Tone::Plain,
            vec![
                partition.name.clone(),
                partition.owner.clone().unwrap_or_else(|| "-".to_owned()),
                token.unwrap_or_default(),
                remarks.join(", "),
            ],
        );
    }
    table
}

fn write_foot(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}", summary(snapshot))?;
    for wish in wishes_of_absent(snapshot) {
        writeln!(out, "{}", crate::terminal::message(&wish))?;
    }
    write_problems(&snapshot.problems, out)
}

/// A line for each thing that could not be read.
pub(super) fn write_problems(problems: &[String], out: &mut dyn Write) -> io::Result<()> {
    for problem in problems {
        writeln!(out, "problem: {}", crate::terminal::message(problem))?;
    }
    Ok(())
}

/// What is wished of workers that are not here, which no row shows.
fn wishes_of_absent(snapshot: &Snapshot) -> Vec<String> {
    let here = |name: &str| {
        let worker = snapshot.worker(name);
        worker.is_some_and(|worker| worker.life.is_here())
    };
    let mut lines = Vec::new();
    let wishes = &snapshot.wishes;
    for (names, state) in [(&wishes.cordoned, "cordoned"), (&wishes.drained, "drained")] {
        let absent: Vec<&str> = names.iter().map(String::as_str).collect();
        let absent: Vec<&str> = absent.into_iter().filter(|name| !here(name)).collect();
        if !absent.is_empty() {
            let names = shortened(&absent.join(", "), WISHES_CHARS_MAX).into_owned();
            lines.push(format!("{state}, and not here: {names} (divvy uncordon)"));
        }
    }
    let pins = wishes.pinned.iter();
    let pins =
        pins.filter(|(partition, worker)| !here(worker) || snapshot.partition(partition).is_none());
    let pins: Vec<String> = pins
        .map(|(partition, worker)| format!("{partition} to {worker}"))
        .collect();
    if !pins.is_empty() {
        let pins = shortened(&pins.join(", "), WISHES_CHARS_MAX).into_owned();
        lines.push(format!("pinned in vain: {pins} (divvy unpin)"));
    }
    lines
}

/// How all is, in one line.
pub(super) fn summary(snapshot: &Snapshot) -> String {
    let all = snapshot.partitions.len();
    let here = snapshot.workers.iter().filter(|w| w.life.is_here()).count();
    let (unowned, misplaced) = (unowned(snapshot), misplaced(snapshot));
    let mut line = format!(
        "{} on {}: {} owned",
        counted(all, "partition"),
        counted(here, "worker"),
        all - unowned
    );
    if unowned > 0 {
        line += &format!(", {unowned} without an owner");
    }
    let foreign = foreign(snapshot);
    if foreign > 0 {
        line += &format!(", {foreign} of them by workers of other clusters");
    }
    if misplaced > 0 {
        line += &format!(", {misplaced} on the way or not where they should be");
    }
    line
}
