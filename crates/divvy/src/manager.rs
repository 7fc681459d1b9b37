//! Leader mode, as services embed it: workers claim stable ids, one of them
//! leads and says who owns what, and each is told what to start and to stop.
//!
//! ```
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! use divvy::Partition;
//! use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
//! use divvy::store::MemoryKeyValue;
//!
//! struct Print;
//!
//! #[async_trait::async_trait]
//! impl Hooks for Print {
//!     async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
//!         println!("{partition} is mine, with token {}", grant.token().get());
//!         Ok(())
//!     }
//! }
//!
//! let source = StaticSource::shards(["orders"], 8)?;
//! let manager = Manager::builder(MemoryKeyValue::new(), source)
//!     .settings(Settings::fast())
//!     .hooks(Print)
//!     .start()
//!     .await?;
//! assert!(manager.worker_id().is_some_and(|id| id.starts_with("worker-")));
//! manager.stop(Shutdown::Leave).await?;
//! # Ok::<(), divvy::manager::ManagerError>(())
//! # }).unwrap();
//! ```
//!
//! What may be promised depends on the store, and ends where a process stalls
//! between checking its [`Grant`] and acting: hand the token to the resource,
//! and let it refuse lower ones.

mod agent;
mod aside;
mod builder;
pub(crate) mod calls;
mod discovery;
mod driver;
mod election;
mod error;
mod event;
pub(crate) mod grant;
mod hooks;
mod labels;
mod measured;
pub(crate) mod metrics;
mod operations;
mod reach;
mod retry;
pub(crate) mod settings;
mod shown;
mod source;
mod startup;
mod status;
mod suspend;
mod thread;
mod turns;
mod watcher;

pub use builder::ManagerBuilder;
#[cfg(feature = "nats")]
pub(crate) use calls::panic_text;
pub use divvy_core::leader::{
    Holder, LeaderSettings, Lifecycle, Overdue, SessionId, Shutdown, State, StoreOutage, Version,
};
pub use election::ElectionAgent;
pub use error::{ManagerError, state_name};
pub use event::{EventKind, ManagerEvent};
pub use grant::Grant;
#[doc(hidden)]
pub use grant::Lease;
pub use hooks::{HookError, Hooks, NoHooks};
pub use labels::MetricLabels;
pub use metrics::Metrics;
pub use retry::Retry;
pub use settings::{Settings, parse_span};
pub use source::{CommandSource, FileSource, PartitionSource, StaticSource};
pub use status::{AssignedPartition, CurrentAssignment, Following, View};

pub use crate::store::StoreChoice;

use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::watch;

use crate::own_thread::OwnThread;

/// A worker of a cluster in leader mode, which runs. See [`View`], to which it
/// derefs, for what it tells.
///
/// Dropping it leaves the cluster, in the way that the settings say, without
/// waiting for that: within `shutdown_timeout` its thread ends by itself, if
/// the process lives that long. [`Manager::stop`] waits.
#[derive(Debug)]
pub struct Manager {
    view: View,
    stop: watch::Sender<Option<Shutdown>>,
    thread: OwnThread<ManagerError>,
}

impl Manager {
    /// A manager in the making, over a store and a source of partitions.
    pub fn builder(store: impl Into<StoreChoice>, source: impl PartitionSource) -> ManagerBuilder {
        ManagerBuilder::new(store.into(), Arc::new(source))
    }

    /// Stops all work, says so to the others, and ends: within
    /// `shutdown_timeout`, calls of hooks that only tell included, and with
    /// nothing left behind. Only a store that cannot be interrupted in what it
    /// does, as on a disk that hangs, may take a second more. Where hooks do not
    /// return within it, `overdue` decides; where the store is not reached,
    /// others wait for the lease to end, which is an error here.
    pub async fn stop(self, how: Shutdown) -> Result<(), ManagerError> {
        self.stop.send_replace(Some(how));
        self.ending().await
    }

    /// A look at it, which can be kept.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// Why it ended.
    async fn wait_for_end(self) -> ManagerError {
        let done = || ManagerError::Ended("it was stopped".into());
        self.ending().await.err().unwrap_or_else(done)
    }

    async fn ending(self) -> Result<(), ManagerError> {
        let gone = || Err(ManagerError::Ended("its thread is gone".into()));
        self.thread.ended().await.unwrap_or_else(gone)
    }
}

impl Deref for Manager {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

/// Now, on the clock of a manager's events: all processes of this machine share
/// it, nobody can set it, and it counts the time of a suspend.
pub fn now() -> divvy_core::Moment {
    crate::store::clock::boottime()
}
