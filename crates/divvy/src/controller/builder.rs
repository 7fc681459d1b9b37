//! Making and starting a controller.

use std::sync::Arc;

use divvy_core::lease::{Group, SelfDescription};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::Controller;
use super::consumer::ConsumerFactory;
use super::error::ControllerError;
use super::event::{ControllerEvent, Events};
use super::name::default_worker_name;
use super::settings::ControllerSettings;
use super::status::{ControllerView, Status};
use super::thread::{Orders, begin};
use crate::store::LeaseStoreChoice;

/// A controller in the making. Starting it consumes it.
#[must_use = "nothing happens before it is started"]
pub struct ControllerBuilder {
    store: LeaseStoreChoice,
    factory: Arc<dyn ConsumerFactory>,
    settings: ControllerSettings,
    events: Option<mpsc::Sender<ControllerEvent>>,
}

impl ControllerBuilder {
    pub(super) fn new(store: LeaseStoreChoice, factory: Arc<dyn ConsumerFactory>) -> Self {
        Self {
            store,
            factory,
            settings: ControllerSettings::default(),
            events: None,
        }
    }

    /// With these settings, in place of the default ones.
    pub fn settings(mut self, settings: ControllerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Serving these groups, in place of those that the settings name.
    pub fn groups(mut self, groups: impl IntoIterator<Item = Group>) -> Self {
        self.settings.groups = groups.into_iter().collect();
        self
    }

    /// Under this name, in place of the one that the settings have.
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.settings.worker = Some(name.into());
        self
    }

    /// Tells `listener` everything that happens. What it does not take in time
    /// is lost.
    pub fn events(mut self, listener: mpsc::Sender<ControllerEvent>) -> Self {
        self.events = Some(listener);
        self
    }

    /// Whether all settings are inside their bounds and fit together.
    pub fn check(&self) -> Result<(), ControllerError> {
        Ok(self.settings.check()?)
    }

    /// Takes the worker's name and takes part, within `startup_timeout`: that
    /// it then has partitions is not waited for.
    ///
    /// A start that fails, or whose future is dropped, leaves nothing behind.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime: consumers run on it.
    pub async fn start(self) -> Result<Controller, ControllerError> {
        self.start_with(|_view| ()).await
    }

    /// The same; `look` is first given a view of what begins, to follow it
    /// while it starts.
    pub async fn start_with(
        self,
        look: impl FnOnce(ControllerView),
    ) -> Result<Controller, ControllerError> {
        self.check()?;
        let worker = self.settings.worker.clone();
        let worker = worker.unwrap_or_else(default_worker_name);
        let description = SelfDescription {
            healthy: true,
            weight: self.settings.weight,
        };
        let (status, wishes) = Status::new(&worker, description);
        look(ControllerView {
            status: Arc::clone(&status),
        });
        let orders = Orders {
            store: self.store,
            factory: self.factory,
            settings: self.settings,
            worker,
            events: Events {
                listener: self.events,
                status: Arc::clone(&status),
            },
            status,
            wishes,
            runtime: Handle::current(),
        };
        let (controller, started) = begin(orders)?;
        match started.await {
            Ok(Ok(())) => Ok(controller),
            Ok(Err(error)) => {
                let _same = controller.ended().await;
                Err(error)
            }
            Err(_gone) => {
                let ended = controller.ended().await;
                let why = || ControllerError::Ended("it was stopped".into());
                Err(ended.err().unwrap_or_else(why))
            }
        }
    }
}

impl std::fmt::Debug for ControllerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("store", &self.store)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
