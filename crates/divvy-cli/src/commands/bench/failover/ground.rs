//! Where a run takes place: the store, what is left there, and whether it goes
//! on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow};
use divvy::store::{KeyValue, Prefix, StoreSettings, StoreUrl, erase_key_value, open_key_value};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::runtime;

pub(super) struct Ground<'a> {
    runtime: Runtime,
    store: &'a StoreUrl,
    interrupted: Arc<AtomicBool>,
}

impl<'a> Ground<'a> {
    pub(super) fn new(store: &'a StoreUrl) -> anyhow::Result<Self> {
        // A thread of its own answers the server while workers are waited for.
        let runtime = runtime::with_threads(1)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let entered = runtime.enter();
            let mut signals = signal(kind).context("no signals")?;
            drop(entered);
            let heard = Arc::clone(&interrupted);
            runtime.spawn(async move {
                signals.recv().await;
                heard.store(true, Ordering::Relaxed);
            });
        }
        Ok(Self {
            runtime,
            store,
            interrupted,
        })
    }

    /// Whether somebody wants this to end.
    pub(super) fn interrupted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupted)
    }

    pub(super) fn open(&self, reach: &StoreSettings) -> anyhow::Result<Arc<dyn KeyValue>> {
        let opened = self.runtime.block_on(open_key_value(self.store, reach));
        opened.with_context(|| self.store.to_string())
    }

    /// Workers are killed, and everything is deleted in the end.
    pub(super) fn check_empty(&self, reach: &StoreSettings) -> anyhow::Result<()> {
        let opened = self.open(reach)?;
        let listed = self.runtime.block_on(opened.list(&Prefix::ALL))?;
        if listed.is_empty() {
            return Ok(());
        }
        let cluster = &reach.cluster;
        Err(anyhow!(
            "cluster '{cluster}': is in use; give one that nobody else has, or none"
        ))
    }

    /// Erases what a run has written, whatever came of it: in NATS also the marks
    /// that deletions leave in a bucket.
    pub(super) fn cleared<T>(
        &self,
        reach: &StoreSettings,
        outcome: anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        // Nobody else writes there any more.
        let cleared = self.runtime.block_on(erase_key_value(self.store, reach));
        // What went wrong first matters more.
        let value = outcome?;
        cleared.context("keys of this run are left in the store")?;
        Ok(value)
    }

    /// How large records are at rest: the largest of a worker, and the root
    /// with its parts.
    pub(super) fn sizes(&self, store: &dyn KeyValue) -> anyhow::Result<(usize, usize)> {
        let (mut heartbeat, mut map) = (0, 0);
        for entry in self.runtime.block_on(store.list(&Prefix::ALL))? {
            let (key, bytes) = (entry.key.as_str(), entry.value.len());
            if key.starts_with("w.") {
                heartbeat = heartbeat.max(bytes);
            } else if key == "root" || key.starts_with("c.") {
                map += bytes;
            }
        }
        Ok((heartbeat, map))
    }
}
