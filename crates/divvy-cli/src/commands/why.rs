//! `divvy why`: the last moves of a partition, and their causes.

use std::io::{self, Write};
use std::time::Duration;

use divvy::observer::PartitionStatus;
use divvy::store::GivingUp;
use divvy::{Considered, MoveEntry};
use serde::Serialize;

use super::live;
use crate::args::WhyArgs;
use crate::commands::status::write_problems;
use crate::commands::write_json;
use crate::failure::Failure;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;
use crate::utc::{ago, rough, utc};

/// What is known of a partition.
#[derive(Serialize)]
struct Account {
    format: u32,
    partition: PartitionStatus,
    /// Whether anybody who is here serves it, or it is in the assignment.
    is_served: bool,
    /// How its owner gives up what another should have, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    gives_up: Option<GivingUp>,
    /// As things are now, the best first; empty where nobody ranks.
    ranking: Vec<Considered>,
    /// Newest first.
    moves: Vec<MoveEntry>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

pub(crate) fn run(args: &WhyArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let account = live::block_on(async {
        let mut observer = live::open(&args.at).await?;
        let snapshot = observer.look().await.map_err(live::refused)?;
        let mut problems = snapshot.problems.clone();
        let moves = observer.moves().await.unwrap_or_else(|error| {
            problems.push(error.to_string());
            Vec::new()
        });
        let moves = moves.into_iter();
        let moves = moves.filter(|entry| entry.partition == args.partition);
        let moves: Vec<MoveEntry> = moves.rev().collect();
        let partition = snapshot.partition(&args.partition).cloned();
        // Where nobody is left who serves it, the log still knows it.
        if moves.is_empty() {
            live::known_partition(&snapshot, &args.partition)?;
        }
        let is_served = partition.is_some();
        let mut partition = partition.unwrap_or_else(|| unserved(&args.partition));
        let ranking = observer.ranking(&args.partition);
        let ranking = ranking.await.map_err(live::refused)?;
        let gives_up = match &partition.owner {
            Some(owner) => observer.gives_up(owner).await.map_err(live::refused)?,
            None => None,
        };
        if is_of_another(&partition, &moves) {
            partition.token = None;
        }
        Ok(Account {
            format: 1,
            partition,
            is_served,
            gives_up,
            ranking,
            moves,
            problems,
        })
    })?;
    if args.json {
        return write_json(out, &account);
    }
    write(&account, &Terminal::of_stdout(), out).map_err(Failure::output)?;
    write_problems(&account.problems, out).map_err(Failure::output)
}

/// A partition that is known from the log alone.
fn unserved(name: &str) -> PartitionStatus {
    PartitionStatus {
        name: name.to_owned(),
        owner: None,
        token: None,
        asked_back: false,
        orphaned: false,
        foreign: false,
        lease_left: None,
        desired: None,
        misaligned: None,
        weight: 1.0,
        pinned: None,
    }
}

/// Whether a token is known to have been granted to somebody else than the
/// owner: what does not know tokens writes leases without one.
fn is_of_another(partition: &PartitionStatus, moves: &[MoveEntry]) -> bool {
    let (Some(token), Some(owner)) = (partition.token, &partition.owner) else {
        return false;
    };
    let token = token.to_string();
    let mut granted = moves.iter().filter(|it| it.token.as_ref() == Some(&token));
    granted.any(|it| it.to.as_ref().is_some_and(|to| to != owner))
}

fn write(account: &Account, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let partition = &account.partition;
    let name = &partition.name;
    match &partition.owner {
        None if !account.is_served => {
            write!(out, "{name} has no owner: nobody who is here serves it")?;
        }
        None => {
            let why = match partition.misaligned {
                Some("cap") => ": all who could take it have as many as they may (cap)",
                Some("quarantine") => {
                    ": the store is new, has restarted or lost its data, and grants nothing yet (quarantine)"
                }
                Some("stop_not_confirmed") => {
                    ": its stop was not confirmed, and its lease has expired (stop_not_confirmed)"
                }
                _ => "",
            };
            write!(out, "{name} has no owner{why}")?;
        }
        Some(owner) if partition.asked_back => {
            write!(out, "{name} is asked back from {owner}")?;
        }
        Some(owner) if partition.orphaned => {
            write!(out, "{name} was with {owner}, which is gone")?;
        }
        Some(owner) if partition.foreign => {
            write!(
                out,
                "{name} is held by {owner}, which is not of this cluster"
            )?;
        }
        Some(owner) if partition.misaligned == Some("stop_not_confirmed") => {
            write!(
                out,
                "{name} is with {owner}, whose service has not confirmed its stop: the lease is \
                 left to expire (stop_not_confirmed)"
            )?;
        }
        Some(owner) => write!(out, "{name} is with {owner}")?,
    }
    if let Some(token) = partition.token {
        write!(out, ", by token {token}")?;
    }
    if let Some(pinned) = &partition.pinned {
        write!(out, ", and pinned to {pinned}")?;
    }
    writeln!(out)?;
    match (&partition.desired, &partition.owner) {
        (Some(desired), owner) if owner.as_ref() != Some(desired) => {
            let why = kept(account).unwrap_or_default();
            writeln!(out, "It should be with {desired}{why}.")?;
        }
        _ => {}
    }
    if !account.ranking.is_empty() {
        writeln!(out, "\nHow workers rank for it now:")?;
        ranking(account).write(out, terminal.colour)?;
    }
    if account.moves.is_empty() {
        let text = match partition.owner {
            Some(_) => "Its last move is older than what is remembered of moves.",
            None => "Nobody has had it, as far as moves are remembered.",
        };
        return writeln!(out, "\n{text}");
    }
    writeln!(out, "\nIts last moves, the newest first:")?;
    moves(account)
        .fitted(terminal, &["considered", "when (UTC)"], None)
        .write(out, terminal.colour)
}

/// What keeps it with an owner that is alive, as far as that is known.
fn kept(account: &Account) -> Option<String> {
    let owner = account.partition.owner.as_ref()?;
    let gives_up = account.gives_up?;
    let span = |ms: u64| rough(Duration::from_millis(ms));
    let why = match account.partition.misaligned? {
        "off" => "gives up nothing for others (shedding is off)".to_owned(),
        "min_runtime" => format!(
            "keeps what it starts for {} at least (min_runtime)",
            span(gives_up.min_runtime_ms)
        ),
        "cooldown" => format!(
            "keeps what has moved for {} (move_cooldown)",
            span(gives_up.cooldown_ms)
        ),
        "pace" if gives_up.at_once > 0 => format!(
            "gives up {} at a time, every {} (pace)",
            gives_up.at_once,
            span(gives_up.every_ms)
        ),
        "pace" => "gives it up next".to_owned(),
        _ => return None,
    };
    Some(format!(": {owner} is alive, and {why}"))
}

fn ranking(account: &Account) -> Table {
    let headings = [
        ("rank", Align::Right),
        ("worker", Align::Left),
        ("score", Align::Right),
        ("remark", Align::Left),
    ];
    let mut table = Table::new(headings.map(|(name, align)| (name.to_owned(), align)));
    for (place, worker) in account.ranking.iter().enumerate() {
        let is_owner = account.partition.owner.as_ref() == Some(&worker.worker);
        let is_desired = account.partition.desired.as_ref() == Some(&worker.worker);
        let remark = match (&worker.rejected, is_owner) {
            (Some(rejected), _) => rejected.clone(),
            (None, true) => "has it".to_owned(),
            (None, false) if is_desired => "should have it".to_owned(),
            (None, false) => String::new(),
        };
        let tone = match is_owner {
            true => Tone::Strong,
            false => Tone::Plain,
        };
        table.push(
            tone,
            vec![
                (place + 1).to_string(),
                worker.worker.clone(),
                worker
                    .score
                    .map_or_else(|| "pinned".into(), |s| format!("{s:.4}")),
                remark,
            ],
        );
    }
    table
}

/// A worker with its score, and why it did not get the partition.
fn considered(worker: &Considered) -> String {
    let score = worker.score.map(|score| format!("{score:.4}"));
    let words = [Some(worker.worker.clone()), score, worker.rejected.clone()];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn moves(account: &Account) -> Table {
    let headings = ["when (UTC)", "", "from", "to", "why", "considered"];
    let mut table = Table::new(headings.map(|name| (name.to_owned(), Align::Left)));
    for entry in &account.moves {
        let considered: Vec<String> = entry.considered.iter().map(considered).collect();
        let who = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
        table.push(
            Tone::Plain,
            vec![
                utc(entry.unix_ms),
                ago(entry.unix_ms),
                who(&entry.from),
                who(&entry.to),
                entry.cause.clone(),
                considered.join("; "),
            ],
        );
    }
    table
}
