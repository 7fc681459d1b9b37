//! A cluster that starts all at once, at the size that bounds are given for.

use std::time::Duration;

use anyhow::Context as _;
use divvy::store::{KeyValue, Prefix, StoreSettings, StoreUrl, open_key_value};
use divvy_sim::History;
use tokio::runtime::Runtime;

use super::report::Bound;
use super::{clear, crew, gather, ms};
use crate::args::FailoverArgs;

/// What the start of a cluster came to.
pub(super) struct Start {
    pub(super) history: History,
    pub(super) claims: Vec<Duration>,
    pub(super) elections: Vec<Duration>,
    pub(super) failed: usize,
    pub(super) memory: Option<u64>,
    /// From the first process to the last start hook.
    pub(super) took: Duration,
    /// The part of it after the window that waits for more workers.
    placed: Duration,
    heartbeat_bytes: usize,
    map_bytes: usize,
}

impl Start {
    pub(super) fn measure(
        args: &FailoverArgs,
        runtime: &Runtime,
        store: &StoreUrl,
        reach: &StoreSettings,
    ) -> anyhow::Result<Self> {
        let reach = StoreSettings {
            cluster: format!("{}-start", reach.cluster),
            ..reach.clone()
        };
        let opened = runtime
            .block_on(open_key_value(store, &reach))
            .with_context(|| store.to_string())?;
        let mut crew = crew(args, &reach, args.start_partitions);
        let took = gather(&mut crew, args.start_workers, args.start_partitions)?;
        let placed = crew.board().first_placement().unwrap_or(took);
        let memory = crew.memory();
        let (heartbeat_bytes, map_bytes) = runtime.block_on(sizes(&*opened))?;
        crew.end()?;
        runtime.block_on(clear(&*opened))?;
        let failed = crew.failed_starts;
        let mut board = crew.board();
        Ok(Self {
            history: std::mem::take(&mut board.history),
            claims: std::mem::take(&mut board.claims),
            elections: std::mem::take(&mut board.elections),
            failed,
            memory,
            took,
            placed,
            heartbeat_bytes,
            map_bytes,
        })
    }

    pub(super) fn bounds(&self) -> Vec<Bound> {
        vec![
            Bound::new(
                "first assignment after its window, ms",
                ms(self.placed),
                5_000.0,
            ),
            Bound::new("heartbeat, bytes", self.heartbeat_bytes as f64, 100.0),
            Bound::new("map, bytes", self.map_bytes as f64, 50_000.0),
        ]
    }
}

/// How large records are at rest: the largest of a worker, and the root with
/// its parts.
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
