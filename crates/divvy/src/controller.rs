//! Lease mode, as services embed it: every partition is one lease, and workers
//! agree on who should have it without a leader.
//!
//! ```
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! use divvy::Partition;
//! use divvy::controller::{Consumer, ConsumerFactory, Controller, ControllerSettings};
//! use divvy::lease::{Group, StopReason};
//! use divvy::manager::{Grant, HookError};
//! use divvy::store::MemoryLeases;
//!
//! struct Print;
//!
//! #[async_trait::async_trait]
//! impl ConsumerFactory for Print {
//!     async fn start(&self, partition: &Partition, grant: Grant) -> Result<Box<dyn Consumer>, HookError> {
//!         println!("{partition} is mine, with token {}", grant.token());
//!         Ok(Box::new(()))
//!     }
//! }
//!
//! let controller = Controller::builder(MemoryLeases::new("shop")?, Print)
//!     .settings(ControllerSettings::fast())
//!     .groups([Group::new("orders", 8)?])
//!     .start()
//!     .await?;
//! controller.wait_until(|owned| owned.len() == 8).await;
//! controller.stop().await?;
//! # Ok::<(), divvy::controller::ControllerError>(())
//! # }).unwrap();
//! ```
//!
//! What may be promised depends on the store, and ends where a process stalls
//! between checking its [`Grant`](crate::manager::Grant) and acting: hand the
//! token to the resource, and let it refuse lower ones.

mod builder;
mod consumer;
mod consumers;
mod driver;
mod error;
mod event;
mod metrics;
mod name;
mod operations;
mod settings;
mod status;
mod thread;

pub use builder::ControllerBuilder;
pub use consumer::{Consumer, ConsumerFactory};
pub use error::ControllerError;
pub use event::{ControllerEvent, ControllerEventKind};
pub use metrics::ControllerMetrics;
pub use name::default_worker_name;
pub use settings::ControllerSettings;
pub use status::{ControllerView, Owned};

pub use crate::store::LeaseStoreChoice;

use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::watch;

use crate::own_thread::OwnThread;

/// A worker in lease mode, which runs. See [`ControllerView`], to which it
/// derefs, for what it tells.
///
/// Dropping it stops it without waiting for that: within `shutdown_timeout`
/// its thread ends by itself, if the process lives that long.
/// [`Controller::stop`] waits.
#[derive(Debug)]
pub struct Controller {
    view: ControllerView,
    stop: watch::Sender<bool>,
    thread: OwnThread<ControllerError>,
}

impl Controller {
    /// A controller in the making, over a store and whoever starts consumers.
    pub fn builder(
        store: impl Into<LeaseStoreChoice>,
        factory: impl ConsumerFactory,
    ) -> ControllerBuilder {
        ControllerBuilder::new(store.into(), Arc::new(factory))
    }

    /// Stops all consumers, gives their leases back, and ends: within
    /// `shutdown_timeout`. Where a consumer does not stop within it, its lease
    /// has to run out, which is an error here.
    pub async fn stop(self) -> Result<(), ControllerError> {
        self.stop.send_replace(true);
        self.ended().await
    }

    /// Waits until it ends by itself, which it does only when it cannot go on:
    /// when another process has its name.
    pub async fn ended(self) -> Result<(), ControllerError> {
        let gone = || Err(ControllerError::Ended("its thread is gone".into()));
        self.thread.ended().await.unwrap_or_else(gone)
    }

    /// A look at it, which can be kept.
    pub fn view(&self) -> ControllerView {
        self.view.clone()
    }
}

impl Deref for Controller {
    type Target = ControllerView;

    fn deref(&self) -> &ControllerView {
        &self.view
    }
}
