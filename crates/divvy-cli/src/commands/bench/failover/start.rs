//! A cluster that starts all at once, at the size that bounds are given for.

use std::time::Duration;

use divvy::store::{KeyValue, StoreSettings};
use divvy_sim::History;

use super::crew::Crew;
use super::ground::Ground;
use super::report::Bound;
use super::{crew, gather, ms};
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
    /// The part of it after the window that waits for more workers, where there
    /// was one.
    placed: Option<Duration>,
    heartbeat_bytes: usize,
    map_bytes: usize,
}

impl Start {
    pub(super) fn measure(
        args: &FailoverArgs,
        ground: &Ground<'_>,
        reach: &StoreSettings,
    ) -> anyhow::Result<Self> {
        let reach = StoreSettings {
            cluster: format!("{}-start", reach.cluster),
            ..reach.clone()
        };
        let opened = ground.open(&reach)?;
        let mut crew = crew(args, ground, &reach, args.start_partitions);
        let started = Self::of(args, ground, &*opened, &mut crew);
        crew.kill_all();
        ground.cleared(&reach, started)
    }

    fn of(
        args: &FailoverArgs,
        ground: &Ground<'_>,
        opened: &dyn KeyValue,
        crew: &mut Crew,
    ) -> anyhow::Result<Self> {
        let took = gather(crew, args.start_workers(), args.start_partitions)?;
        let placed = crew.board().first_placement();
        let memory = crew.memory();
        let (heartbeat_bytes, map_bytes) = ground.sizes(opened)?;
        crew.end()?;
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
        let (counted, placed) = match self.placed {
            Some(placed) => (
                "first assignment, from the end of its window to the last start, ms",
                placed,
            ),
            None => (
                "first assignment, from the first process to the last start, ms",
                self.took,
            ),
        };
        vec![
            Bound::new(counted, ms(placed), 5_000.0),
            Bound::new("heartbeat, bytes", self.heartbeat_bytes as f64, 100.0),
            Bound::new("map, bytes", self.map_bytes as f64, 50_000.0),
        ]
    }
}
