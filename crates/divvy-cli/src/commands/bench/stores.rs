//! `divvy bench stores`: how fast stores are.

use std::io::Write;

use anyhow::Context as _;
use divvy::store::{
    StoreErrorKind, StoreKind, StoreSettings, StoreUrl, open_key_value, open_leases,
};

use super::measure::Figure;
use super::{key_value, leases, peer};
use crate::args::{STORE_VARIABLE, StoresArgs};
use crate::commands::write_json;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// The cluster whose keys are written where none is named.
const CLUSTER: &str = "divvy-bench";

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
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads")
        .map_err(Failure::Failed)?;
    let spinner = Spinner::start("measuring");
    let mut figures = Vec::new();
    for url in &stores {
        figures.extend(runtime.block_on(measure(url, &settings, args))?);
        if args.peer {
            spinner.turn_to("measuring with redis-benchmark");
            figures.extend(peer::measure(url, args.clients)?);
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
    Ok(vec![
        "memory".parse().map_err(wrong)?,
        file.parse().map_err(wrong)?,
    ])
}

async fn measure(
    url: &StoreUrl,
    settings: &StoreSettings,
    args: &StoresArgs,
) -> Result<Vec<Figure>, Failure> {
    let failed = |error: divvy::store::StoreError| match error.kind() {
        StoreErrorKind::Invalid => Failure::Usage(error.to_string()),
        _ => Failure::Failed(anyhow::Error::new(error).context(url.to_string())),
    };
    let store = open_key_value(url, settings).await.map_err(failed)?;
    let name = store.describe();
    let measured = key_value::measure(&store, &name, args.clients, args.time).await;
    let mut figures = measured.map_err(failed)?;
    if url.kind() != StoreKind::Nats {
        let store = open_leases(url, settings).await.map_err(failed)?;
        let measured = leases::measure(&store, &name, args.leases, args.time, args.interval).await;
        figures.extend(measured.map_err(failed)?);
    }
    Ok(figures)
}

fn write_table(out: &mut dyn Write, figures: &[Figure]) -> Result<(), Failure> {
    let right = ["per second", "p50", "p99", "max", "of a core"];
    let headings = [("store", Align::Left), ("load", Align::Left)];
    let headings = headings
        .into_iter()
        .chain(right.map(|heading| (heading, Align::Right)));
    let mut table = Table::new(headings.map(|(heading, align)| (heading.to_owned(), align)));
    for figure in figures {
        let ms = |value: f64| format!("{value:.3} ms");
        let share = figure
            .core_share
            .map(|share| format!("{:.1} %", share * 100.0));
        table.push(
            Tone::Plain,
            vec![
                figure.store.clone(),
                figure.load.clone(),
                format!("{:.0}", figure.per_second),
                ms(figure.p50_ms),
                ms(figure.p99_ms),
                ms(figure.max_ms),
                share.unwrap_or_default(),
            ],
        );
    }
    let colour = Terminal::of_stdout().colour;
    table.write(out, colour).map_err(Failure::output)
}
