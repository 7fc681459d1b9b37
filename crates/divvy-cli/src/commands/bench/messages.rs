//! `divvy bench messages`: whether every message of partitions that move is
//! handled, once and in order, and how fast.

mod desk;
mod faults;
mod idle;
mod ledger;
mod overhead;
mod part;
mod place;
mod publisher;
mod report;
mod troupe;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use divvy::store::StoreKind;
use divvy::subscriptions::Subscriptions;

use self::desk::{Desk, lock};
use self::faults::Happened;
use self::ledger::Ledger;
use self::overhead::Nothing;
use self::part::Part;
use self::place::Place;
use self::publisher::Publishing;
use self::report::Figures;
use self::troupe::Troupe;
use super::failover::Spread;
use crate::args::{MessagesArgs, RetentionName};
use crate::commands::worker::store_of;
use crate::commands::write_json;
use crate::exec::end_with_parent;
use crate::failure::Failure;
use crate::runtime;
use crate::spinner::Spinner;

/// What the stream of messages that workers handle is called.
const KIND: &str = "live";

pub(crate) fn run(args: &MessagesArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let url = store_of(args.store.as_ref())?;
    if url.kind() != StoreKind::Nats {
        let rule = "has no streams of messages; give the address of a NATS server";
        return Err(Failure::usage("store", url, rule));
    }
    let mut reach = args.reach.settings()?;
    let part = args.part.as_deref().map(Part::parse).transpose();
    let part = part.map_err(Failure::Failed)?;
    if let Some(part) = &part {
        reach.cluster.clone_from(&part.cluster);
    } else if reach.cluster == "default" {
        // Nobody else's, and empty.
        reach.cluster = format!("divvy-bench-{:08x}", fastrand::u32(..));
    }
    let place = Place::new(url, reach, args);
    let runtime = runtime::with_threads(2).map_err(Failure::Failed)?;
    if let Some(part) = part {
        end_with_parent()?;
        return runtime.block_on(part.play(place)).map_err(Failure::Failed);
    }
    let spinner = Spinner::start("measuring");
    if let Some(span) = args.idle {
        let cost = runtime.block_on(async {
            let cost = idle::measure(&place, args, span).await;
            place.clear(&[idle::KIND]).await.and(cost)
        });
        drop(spinner);
        return cost.map_err(Failure::Failed)?.write(args.json, out);
    }
    let figures = runtime.block_on(async {
        let figures = measure(&place, args).await;
        place.clear(&[KIND, overhead::KIND]).await.and(figures)
    });
    drop(spinner);
    let figures = figures.map_err(Failure::Failed)?;
    match args.json {
        true => write_json(out, &figures)?,
        false => figures.write(out)?,
    }
    match figures.wrong() {
        0 => Ok(()),
        count => Err(Failure::Failed(anyhow!(
            "{count} messages were lost, repeated, out of order or done under an old token"
        ))),
    }
}

async fn measure(place: &Place, args: &MessagesArgs) -> anyhow::Result<Figures> {
    let backlog = match args.no_overhead {
        true => None,
        false => Some(overhead::measure(place, args.messages).await?),
    };
    let figures = live(place, args).await?;
    Ok(Figures {
        overhead: backlog.map(|backlog| backlog.ratio),
        backlog,
        ..figures
    })
}

/// Publishes while workers, as processes, handle messages.
async fn live(place: &Place, args: &MessagesArgs) -> anyhow::Result<Figures> {
    let ledger = Arc::new(Mutex::new(Ledger::new(place.partitions)));
    let scratch = tempfile::tempdir().context("no directory for a socket")?;
    let socket = scratch.path().join("ledger");
    let _desk = Desk::open(&socket, Arc::clone(&ledger))?;
    let settings = place.subscription(KIND);
    let opened = Subscriptions::open(&place.url, &place.reach, settings.clone(), Nothing).await?;
    // In a stream of interest, nothing is kept for who is not there yet.
    opened.ensure(&place.all()?).await?;
    let mut troupe = Troupe::new(&socket, &place.reach.cluster, Arc::clone(&ledger));
    for _ in 0..args.workers {
        troupe.join()?;
    }
    let is_enough = Arc::new(AtomicBool::new(true));
    let mut publishing = Publishing {
        client: place.client().await?,
        settings,
        partitions: place.partitions,
        first: 0,
        least: 1,
        rate: None,
        is_enough: Arc::clone(&is_enough),
    };
    // With the first message of every partition workers have started.
    publishing.clone().run(Some(Arc::clone(&ledger))).await?;
    faults::caught_up(&ledger).await?;
    lock(&ledger).is_warm();
    let begun = Instant::now();
    is_enough.store(!args.faults, Ordering::Relaxed);
    publishing.first = 1;
    publishing.least = args.messages;
    publishing.rate = Some(args.rate);
    let publishing = tokio::spawn(publishing.run(Some(Arc::clone(&ledger))));
    let mut happened = Happened::default();
    if args.faults {
        let restart = args.restart.as_deref();
        let done = faults::run(&mut troupe, &ledger, args.rounds, args.lease, restart).await;
        is_enough.store(true, Ordering::Relaxed);
        happened = done?;
    }
    publishing.await.context("publishing ended")??;
    // What is still missing then is lost, and counted.
    let _late = faults::caught_up(&ledger).await;
    let seconds = begun.elapsed().as_secs_f64();
    happened.failed = troupe.failed();
    let workers = u32::try_from(troupe.count()).unwrap_or(u32::MAX);
    troupe.end().await?;
    let ledger = lock(&ledger);
    Ok(Figures {
        retention: retention_name(args.retention),
        partitions: place.partitions,
        workers,
        account: ledger.account(),
        faults: happened,
        latency_ms: Spread::of(ledger.latencies()),
        seconds,
        overhead: None,
        backlog: None,
    })
}

const fn retention_name(retention: RetentionName) -> &'static str {
    match retention {
        RetentionName::Limits => "limits",
        RetentionName::Interest => "interest",
        RetentionName::Workqueue => "workqueue",
    }
}
