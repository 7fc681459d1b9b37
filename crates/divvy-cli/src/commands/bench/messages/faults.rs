//! What is done to workers and their server while messages flow.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use serde::Serialize;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::desk::{SharedLedger, lock};
use super::ledger::Fault;
use super::troupe::Troupe;

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take until messages are handled again.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often what happened.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Happened {
    joins: u32,
    stops: u32,
    kills: u32,
    pauses: u32,
    restarts: u32,
    /// Workers that ended by themselves.
    pub(super) failed: usize,
}

/// Does everything, so many times.
pub(super) async fn run(
    troupe: &mut Troupe,
    ledger: &SharedLedger,
    rounds: u32,
    lease: Duration,
    restart: Option<&str>,
) -> anyhow::Result<Happened> {
    let mut happened = Happened::default();
    for _ in 0..rounds {
        troupe.join()?;
        happened.joins += 1;
        caught_up(ledger).await?;
        troupe.stop().await?;
        happened.stops += 1;
        caught_up(ledger).await?;
        troupe.kill().await?;
        happened.kills += 1;
        troupe.join()?;
        happened.joins += 1;
        caught_up(ledger).await?;
        // Long enough for its partitions to be handed on.
        troupe.pause(lease * 5 / 2).await?;
        happened.pauses += 1;
        caught_up(ledger).await?;
        if let Some(command) = restart {
            restarted(ledger, command).await?;
            happened.restarts += 1;
        }
    }
    Ok(happened)
}

/// Waits until all that is published by now is handled.
pub(super) async fn caught_up(ledger: &SharedLedger) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    let counts = lock(ledger).so_far();
    while !lock(ledger).has_done(&counts) {
        if Instant::now() > end {
            return Err(anyhow!("messages were not handled within {PATIENCE:?}"));
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Restarts the server. That is over when messages are handled again: until
/// workers are connected, what they acknowledge may get lost.
async fn restarted(ledger: &SharedLedger, command: &str) -> anyhow::Result<()> {
    let from = divvy::manager::now();
    let status = Command::new("sh").args(["-c", command]).status().await;
    let status = status.context("cannot run the command that restarts the server")?;
    if !status.success() {
        return Err(anyhow!(
            "the command that restarts the server failed: {status}"
        ));
    }
    caught_up(ledger).await?;
    lock(ledger).happened(Fault {
        worker: None,
        from,
        to: divvy::manager::now(),
    });
    Ok(())
}
