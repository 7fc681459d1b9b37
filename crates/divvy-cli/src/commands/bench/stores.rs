//! `divvy bench stores`: how fast stores are.

use std::io::Write;

use anyhow::Context as _;
use divvy::store::{
    StoreError, StoreErrorKind, StoreKind, StoreSettings, StoreUrl, open_key_value, open_leases,
};

use super::measure::Figure;
use super::{keeping, key_value, leases, part, peer, processes};
use crate::args::{STORE_VARIABLE, StoresArgs};
use crate::commands::write_json;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone};
use crate::terminal::{Terminal, printable};
use crate::wrap::fold;

/// The cluster whose keys are written where none is named.
const CLUSTER: &str = "divvy-bench";
/// On a narrow terminal, the columns that are left out first, and the
/// characters that the load keeps.
const SPARE: [&str; 5] = ["of a core", "p50", "max", "each process", "p99"];
const LOAD_CHARS_MIN: usize = 16;

pub(crate) fn run(args: &StoresArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut settings = args.reach.settings()?;
    if settings.cluster == "default" {
        settings.cluster = CLUSTER.to_owned();
    }
    // Nobody works by the leases that are measured, so a store that has just
    // started need not wait for those that it may have forgotten.
    settings.restart_quarantine = false;
    // Kept until the end: a file store of our own lies in it.
    let scratch = tempfile::tempdir()
        .context("no directory for a file store")
        .map_err(Failure::Failed)?;
    let stores = stores(args, scratch.path())?;
    check(args, &stores)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads")
        .map_err(Failure::Failed)?;
    if let Some(part) = args.part {
        let url = stores
            .get(part.store)
            .ok_or_else(|| Failure::usage("part", part.store, "there is no such store"))?;
        return runtime.block_on(part::play(part, url, &settings, args, out));
    }
    let spinner = Spinner::start("measuring");
    let mut figures = Vec::new();
    for (index, url) in stores.iter().enumerate() {
        figures.extend(match args.processes {
            Some(count) => {
                // What is wrong with it is said once, before they start.
                let store = runtime.block_on(open_key_value(url, &settings));
                let store = store.map_err(|error| failed(url, error))?;
                processes::measure(&store.describe(), url, index, count, args)?
            }
            None => runtime.block_on(measure(url, &settings, args))?,
        });
        if args.peer {
            spinner.turn_to("measuring with redis-benchmark");
            figures.extend(peer::measure(url, &settings, args.clients)?);
            spinner.turn_to("measuring");
        }
    }
    drop(spinner);
    match args.json {
        true => write_json(out, &figures),
        false => write_table(out, &figures),
    }
}

fn stores(args: &StoresArgs, scratch: &std::path::Path) -> Result<Vec<StoreUrl>, Failure> {
    if !args.store.is_empty() {
        return Ok(args.store.clone());
    }
    let wrong = |error: divvy::Invalid| Failure::Usage(error.to_string());
    if let Some(text) = std::env::var_os(STORE_VARIABLE) {
        let text = text
            .to_str()
            .ok_or_else(|| Failure::Usage(format!("{STORE_VARIABLE} is not UTF-8")))?;
        return Ok(vec![text.parse().map_err(wrong)?]);
    }
    let file = format!("file:{}", scratch.join("divvy.db").display());
    let mut stores = vec![file.parse().map_err(wrong)?];
    if args.processes.is_none() {
        stores.insert(0, "memory".parse().map_err(wrong)?);
    }
    Ok(stores)
}

fn check(args: &StoresArgs, stores: &[StoreUrl]) -> Result<(), Failure> {
    let Some(count) = args.processes else {
        return Ok(());
    };
    if stores.iter().any(|url| url.kind() == StoreKind::Memory) {
        let rule = "memory is one process's own; name a store that they share, such as file:PATH";
        return Err(Failure::usage("processes", count, rule));
    }
    if args.leases < count {
        let rule = format!("must be at least one for each of {count} processes");
        return Err(Failure::usage("leases", args.leases, rule));
    }
    Ok(())
}

async fn measure(
    url: &StoreUrl,
    settings: &StoreSettings,
    args: &StoresArgs,
) -> Result<Vec<Figure>, Failure> {
    let failed = |error| failed(url, error);
    let store = open_key_value(url, settings).await.map_err(failed)?;
    let name = store.describe();
    let measured = key_value::measure(&store, &name, args.clients, args.time).await;
    let mut figures = measured.map_err(failed)?;
    if url.kind() != StoreKind::Nats {
        let store = open_leases(url, settings).await.map_err(failed)?;
        let measured = leases::measure(&store, &name, args.leases, args.time, args.interval).await;
        figures.extend(measured.map_err(failed)?);
        let kept = keeping::measure(&store, &name, args.leases, args.interval).await;
        figures.extend(kept.map_err(|error| Failure::Failed(anyhow::anyhow!("{url}: {error}")))?);
    }
    Ok(figures)
}

fn failed(url: &StoreUrl, error: StoreError) -> Failure {
    match error.kind() {
        StoreErrorKind::Invalid => Failure::Usage(error.to_string()),
        // It holds what it comes from, and mostly the store.
        _ => {
            let (url, text) = (url.to_string(), error.to_string());
            let named = text.contains(&url) || text.starts_with("store '");
            Failure::Failed(match named {
                true => anyhow::Error::msg(text),
                false => anyhow::Error::msg(format!("{url}: {text}")),
            })
        }
    }
}

fn write_table(out: &mut dyn Write, figures: &[Figure]) -> Result<(), Failure> {
    let terminal = Terminal::of_stdout();
    let whole = table(figures, true);
    if !terminal.interactive || whole.width() <= terminal.width {
        return whole.write(out, terminal.colour).map_err(Failure::output);
    }
    // A store takes much room: it stands above what was measured of it.
    let by_store = figures.chunk_by(|one, next| one.store == next.store);
    for (index, of_one) in by_store.enumerate() {
        if index > 0 {
            writeln!(out).map_err(Failure::output)?;
        }
        let name = of_one.first().map_or("", |figure| &figure.store);
        for line in fold(&printable(name), terminal.width) {
            writeln!(out, "{line}").map_err(Failure::output)?;
        }
        let table = table(of_one, false);
        let table = table.folded(&terminal, &[("load", LOAD_CHARS_MIN)], &SPARE);
        table.write(out, terminal.colour).map_err(Failure::output)?;
    }
    Ok(())
}

/// What was measured, with or without the stores.
fn table(figures: &[Figure], has_stores: bool) -> Table {
    let by_process = figures.iter().any(|figure| figure.per_process.is_some());
    let mut right = vec!["per second", "p50", "p99", "max", "of a core"];
    right.extend(by_process.then_some("each process"));
    let headings = [("store", Align::Left), ("load", Align::Left)];
    let headings = headings.into_iter().skip(usize::from(!has_stores));
    let headings = headings.chain(right.into_iter().map(|heading| (heading, Align::Right)));
    let mut table = Table::new(headings.map(|(heading, align)| (heading.to_owned(), align)));
    for figure in figures {
        let mut cells = cells(figure);
        if !has_stores {
            cells.remove(0);
        }
        if by_process {
            let range = figure.per_process;
            cells.push(
                range.map_or_else(String::new, |[fewest, most]| match fewest == most {
                    true => fewest.to_string(),
                    false => format!("{fewest} to {most}"),
                }),
            );
        }
        table.push(Tone::Plain, cells);
    }
    table
}

fn cells(figure: &Figure) -> Vec<String> {
    let ms = |value: Option<f64>| value.map_or_else(String::new, |ms| format!("{ms:.3} ms"));
    let share = figure
        .core_share
        .map(|share| format!("{:.1} %", share * 100.0));
    vec![
        figure.store.clone(),
        figure.load.clone(),
        format!("{:.0}", figure.per_second),
        ms(figure.p50_ms),
        ms(figure.p99_ms),
        ms(figure.max_ms),
        share.unwrap_or_default(),
    ]
}
