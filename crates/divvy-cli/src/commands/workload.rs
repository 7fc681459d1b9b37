//! `divvy workload`: the workloads that agents with `--workloads dynamic`
//! serve, as the store has them.

use std::io::Write;
use std::sync::Arc;

use anyhow::anyhow;
use divvy::lease::Group;
use divvy::store::{GroupDocument, LeaseName, Leases, StoreKind, StoreSettings, open_leases};
use serde::Serialize;

use super::live::{block_on, refused};
use crate::args::{WorkloadCommand, WorkloadStore};
use crate::commands::worker::store_of;
use crate::commands::write_json;
use crate::failure::Failure;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

const LIMIT: &str = "at most of each worker";
const PROBLEM: &str = "cannot be served";
/// The columns that go on in further lines on a narrow terminal, and the
/// characters that they keep.
const LONG: [(&str, usize); 3] = [(PROBLEM, 16), ("workload", 12), (LIMIT, 8)];

/// A workload with more units than this, and with so many times as many as
/// before, needs a second word.
const GROWN_MAX: u32 = 1000;
const GROWTH_MAX: u32 = 10;

pub(crate) fn run(command: &WorkloadCommand, out: &mut dyn Write) -> Result<(), Failure> {
    block_on(async {
        match command {
            WorkloadCommand::List { json, at } => {
                let documents = open(at, false).await?.groups().await.map_err(refused)?;
                list(&documents, *json, out)
            }
            WorkloadCommand::Set {
                name,
                units,
                max_per_worker,
                yes,
                at,
            } => {
                let group = Group::new(name, *units).map_err(divvy::Error::from)?;
                let group = group.with_max_per_worker(*max_per_worker);
                let store = open(at, true).await?;
                if !yes {
                    check_growth(&store.groups().await.map_err(refused)?, &group)?;
                }
                let set = store.set_group(group.name(), &group.to_json()).await;
                set.map_err(refused)?;
                let (name, units) = (group.name(), group.partitions());
                writeln!(out, "{name} has {units} units").map_err(Failure::output)
            }
            WorkloadCommand::Remove { name, at } => {
                let name = LeaseName::new("workload", name).map_err(divvy::Error::from)?;
                let removed = open(at, false).await?.remove_group(&name).await;
                match removed.map_err(refused)? {
                    true => writeln!(out, "{name} is removed").map_err(Failure::output),
                    false => Err(Failure::Failed(anyhow!("there is no workload '{name}'"))),
                }
            }
        }
    })
}

/// Whether a workload grows no more than somebody may have meant: a digit too
/// many starts a command for each unit.
fn check_growth(documents: &[GroupDocument], group: &Group) -> Result<(), Failure> {
    let name = group.name().as_str();
    let known = documents.iter().find(|document| document.name == name);
    let json = known.and_then(|document| document.json.as_deref());
    let known = json.and_then(|json| Group::from_json(name, json).ok());
    let Some(before) = known.map(|known| known.partitions()) else {
        return Ok(());
    };
    let units = group.partitions();
    let most = before.saturating_mul(GROWTH_MAX).max(GROWN_MAX);
    if units <= most {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{name} has {before} units, and would have {units}: more than {GROWTH_MAX} times as many; \
         if that is meant, give --yes"
    )))
}

/// Opens the store; makes one only where something is written.
async fn open(at: &WorkloadStore, create: bool) -> Result<Arc<dyn Leases>, Failure> {
    let url = store_of(at.store.as_ref())?;
    if url.kind() == StoreKind::Memory {
        let rule = "lives and ends with one process: there is nothing to see or to change";
        return Err(Failure::usage("store", "memory", rule));
    }
    let settings = StoreSettings {
        create,
        ..at.reach.settings()?
    };
    open_leases(&url, &settings).await.map_err(refused)
}

/// A workload as it is shown.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    units: Option<u32>,
    max_per_worker: Option<u32>,
    /// Why it cannot be served, if it cannot.
    problem: Option<String>,
}

impl<'a> Shown<'a> {
    fn of(document: &'a GroupDocument) -> Self {
        let read = match &document.json {
            Some(json) => Group::from_json(&document.name, json).map_err(|e| e.to_string()),
            None => Err("it is listed and has no document".to_owned()),
        };
        let group = read.as_ref().ok();
        Self {
            name: &document.name,
            units: group.map(Group::partitions),
            max_per_worker: group.and_then(Group::max_per_worker),
            problem: read.as_ref().err().cloned(),
        }
    }
}

fn list(documents: &[GroupDocument], json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let shown: Vec<Shown<'_>> = documents.iter().map(Shown::of).collect();
    if json {
        return write_json(out, &shown);
    }
    let headings = [
        ("workload", Align::Left),
        ("units", Align::Right),
        (LIMIT, Align::Right),
        (PROBLEM, Align::Left),
    ];
    let has_problems = shown.iter().any(|workload| workload.problem.is_some());
    let columns = if has_problems { 4 } else { 3 };
    let headings = headings.into_iter().take(columns);
    let mut table = Table::new(headings.map(|(name, align)| (name.to_owned(), align)));
    for workload in shown {
        let number = |number: Option<u32>, none: &str| {
            number.map_or_else(|| none.to_owned(), |n| n.to_string())
        };
        let none = if workload.problem.is_some() {
            ""
        } else {
            "any"
        };
        let mut cells = vec![
            workload.name.to_owned(),
            number(workload.units, ""),
            number(workload.max_per_worker, none),
            workload.problem.unwrap_or_default(),
        ];
        cells.truncate(columns);
        table.push(Tone::Plain, cells);
    }
    let terminal = Terminal::of_stdout();
    table
        .folded(&terminal, &LONG, &[LIMIT])
        .write(out, terminal.colour)
        .map_err(Failure::output)
}
