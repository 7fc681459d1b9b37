//! Making and starting a manager.

use std::sync::Arc;

use divvy_core::{Assignment, Strategy};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::Manager;
use super::election::ElectionAgent;
use super::error::ManagerError;
use super::event::{Events, ManagerEvent};
use super::hooks::{Hooks, NoHooks};
use super::settings::Settings;
use super::source::PartitionSource;
use super::status::{Status, View};
use super::thread::{Orders, begin};
use crate::store::StoreChoice;

/// A manager in the making. Starting it consumes it.
#[must_use = "nothing happens before it is started"]
pub struct ManagerBuilder {
    store: StoreChoice,
    source: Arc<dyn PartitionSource>,
    settings: Settings,
    strategy: Option<Arc<dyn Strategy>>,
    previous: Option<Arc<Assignment>>,
    hooks: Arc<dyn Hooks>,
    agent: Option<Arc<dyn ElectionAgent>>,
    events: Option<mpsc::Sender<ManagerEvent>>,
}

impl ManagerBuilder {
    pub(super) fn new(store: StoreChoice, source: Arc<dyn PartitionSource>) -> Self {
        Self {
            store,
            source,
            settings: Settings::default(),
            strategy: None,
            previous: None,
            hooks: Arc::new(NoHooks),
            agent: None,
            events: None,
        }
    }

    /// With these settings, in place of the default ones.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// With this strategy, in place of the one that the settings name. It
    /// calculates on a thread of its own; while one takes long, everything stays
    /// where it is. A thread that never returns outlives the manager.
    pub fn strategy(mut self, strategy: impl Strategy + 'static) -> Self {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// Takes over from another system: the first placement of the cluster
    /// leaves every partition with the worker that had it, by its instance or
    /// its stable id, and asks the strategy only for the rest. Give it to all
    /// members, for any of them may lead; a cluster that has placed something
    /// itself heeds it no more. [`listing::owners`](crate::listing::owners)
    /// reads one.
    pub fn previous(mut self, assignment: Assignment) -> Self {
        self.previous = Some(Arc::new(assignment));
        self
    }

    /// With these hooks.
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks = Arc::new(hooks);
        self
    }

    /// With an agent that decides who may lead, in place of the store.
    pub fn election_agent(mut self, agent: impl ElectionAgent) -> Self {
        self.agent = Some(Arc::new(agent));
        self
    }

    /// Tells `listener` everything that happens. What it does not take in time
    /// is lost, and counted by [`EventKind::Lost`](super::EventKind::Lost).
    pub fn events(mut self, listener: mpsc::Sender<ManagerEvent>) -> Self {
        self.events = Some(listener);
        self
    }

    /// Whether all settings are inside their bounds and fit together.
    pub fn check(&self) -> Result<(), ManagerError> {
        Ok(self.settings.check()?)
    }

    /// Claims a stable id, takes part in the election and waits for the first
    /// assignment, for at most `startup_timeout`, open windows not counted.
    /// What it waits for is logged, and shown by
    /// [`View::waits_for`](super::View::waits_for).
    ///
    /// The first assignment need not give this worker anything: where a cluster
    /// works already, its share follows after `planned_scale_window`. A rolling
    /// deploy waits for [`View::watch_assignment`](super::View::watch_assignment)
    /// to show partitions before it stops the next worker.
    ///
    /// A start that fails, or whose future is dropped, leaves nothing behind.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime: hooks and the source run on it.
    pub async fn start(self) -> Result<Manager, ManagerError> {
        self.start_with(|_view| ()).await
    }

    /// The same; `look` is first given a view of what begins, to follow it
    /// while it starts.
    pub async fn start_with(self, look: impl FnOnce(View)) -> Result<Manager, ManagerError> {
        self.check()?;
        let strategy = match self.strategy {
            Some(strategy) => strategy,
            None => Arc::from(self.settings.strategy.build()?),
        };
        let (status, wishes) = Status::new(self.settings.description()?);
        look(View {
            status: Arc::clone(&status),
        });
        let orders = Orders {
            store: self.store,
            source: self.source,
            strategy,
            previous: self.previous,
            hooks: self.hooks,
            agent: self.agent,
            instance: self.settings.resolved_instance()?,
            settings: self.settings,
            runtime: Handle::current(),
            status,
            wishes,
            events: Events::to(self.events),
        };
        let (manager, started) = begin(orders)?;
        match started.await {
            Ok(Ok(())) => Ok(manager),
            Ok(Err(error)) => {
                manager.wait_for_end().await;
                Err(error)
            }
            Err(_gone) => Err(manager.wait_for_end().await),
        }
    }
}

impl std::fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagerBuilder")
            .field("store", &self.store)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
