//! `divvy simulate --defects`: every planted mistake, and what catches it.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

use anyhow::anyhow;
use divvy_sim::{Defect, Hunt, Mode, hunt};
use serde::Serialize;

use super::{cores, mode, write_json};
use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// A hunt as printed.
#[derive(Serialize)]
struct Printed<'a> {
    defect: &'a str,
    caught: bool,
    invariant: Option<&'static str>,
    seen: Option<&'a str>,
    seed: Option<u64>,
    seeds: u64,
    bound: u64,
}

pub(super) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<(), Failure> {
    // A mistake may end in a panic of the machine, which is told in the table.
    panic::set_hook(Box::new(|_| {}));
    let spinner = Spinner::start("planting defects");
    let hunts = hunts(mode(args), args.jobs.unwrap_or_else(cores));
    drop(spinner);
    let _ = panic::take_hook();
    match args.json {
        true => write_json(out, &hunts.iter().map(printed).collect::<Vec<_>>())?,
        false => write_table(out, &hunts)?,
    }
    let missed = hunts.iter().filter(|hunt| hunt.caught.is_none()).count();
    match missed {
        0 => Ok(()),
        _ => Err(Failure::Failed(anyhow!(
            "{missed} of {} defects were not caught",
            hunts.len()
        ))),
    }
}

/// Hunts all defects, on several threads, in their order.
fn hunts(mode: Mode, jobs: usize) -> Vec<Hunt> {
    let all = Defect::all(mode);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        while let Some(&defect) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let hunt = hunt(defect);
            found.lock().expect("no thread panics here").push(hunt);
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
    let mut hunts: Vec<Hunt> = found.into_inner().expect("no thread panics here");
    hunts.sort_by(|a, b| a.name.cmp(&b.name));
    hunts
}

fn printed(hunt: &Hunt) -> Printed<'_> {
    let caught = hunt.caught.as_ref();
    Printed {
        defect: &hunt.name,
        caught: caught.is_some(),
        invariant: caught.map(|(_, broken)| broken.invariant),
        seen: caught.map(|(_, broken)| broken.seen.as_str()),
        seed: caught.map(|(seed, _)| *seed),
        seeds: hunt.seeds,
        bound: hunt.bound,
    }
}

fn write_table(out: &mut dyn Write, hunts: &[Hunt]) -> Result<(), Failure> {
    let headings = [
        ("defect", Align::Left),
        ("caught by", Align::Left),
        ("seeds", Align::Right),
        ("at most", Align::Right),
        ("seed", Align::Right),
    ];
    let mut table = Table::new(headings.map(|(heading, align)| (heading.to_owned(), align)));
    for hunt in hunts {
        let (tone, by, seed) = match &hunt.caught {
            Some((seed, broken)) => (Tone::Plain, broken.invariant, seed.to_string()),
            None => (Tone::Strong, "nothing", String::new()),
        };
        let (seeds, bound) = (hunt.seeds.to_string(), hunt.bound.to_string());
        table.push(
            tone,
            vec![hunt.name.clone(), by.to_owned(), seeds, bound, seed],
        );
    }
    table
        .write(out, Terminal::of_stdout().colour)
        .map_err(Failure::output)?;
    let caught = hunts.iter().filter(|hunt| hunt.caught.is_some()).count();
    writeln!(out, "\n{caught} of {} defects are caught", hunts.len()).map_err(Failure::output)
}
