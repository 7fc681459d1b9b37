//! The thread of a manager: its own, so that nothing that an application does
//! to its runtime holds up heartbeats.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use divvy_core::leader::{Batches, Clock, Member, MemberSetup, Overdue, Shutdown, State};
use divvy_core::store::{StoreError, StoreErrorKind};
use divvy_core::{Assignment, Strategy};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tracing::Instrument as _;

use super::Manager;
use super::agent::Agent;
use super::aside::Aside;
use super::calls::{Calls, Limits, panic_text};
use super::discovery::Discovery;
use super::driver::{Driver, INPUTS_MAX, Parts};
use super::election::ElectionAgent;
use super::error::ManagerError;
use super::event::Events;
use super::grant::Authority;
use super::hooks::Hooks;
use super::measured::Measured;
use super::reach::reach;
use super::settings::Settings;
use super::settings::span::Span;
use super::source::PartitionSource;
use super::startup::{Started, Startup};
use super::status::{Status, View, Wish};
use crate::own_thread::OwnThread;
use crate::store::clock::{boottime, unix_ms};
use crate::store::{KeyValue, StoreChoice, open_key_value};

/// How long what a store does on threads of its own may take to end.
const ENDING: Duration = Duration::from_secs(1);

/// What a manager is to be made of.
pub(super) struct Orders {
    pub(super) store: StoreChoice,
    pub(super) source: Arc<dyn PartitionSource>,
    pub(super) strategy: Arc<dyn Strategy>,
    pub(super) previous: Option<Arc<Assignment>>,
    pub(super) hooks: Arc<dyn Hooks>,
    pub(super) agent: Option<Arc<dyn ElectionAgent>>,
    pub(super) instance: Box<str>,
    pub(super) settings: Settings,
    pub(super) runtime: Handle,
    pub(super) status: Arc<Status>,
    pub(super) wishes: mpsc::Receiver<Wish>,
    pub(super) events: Events,
}

/// Begins, and gives the handle and where the start will be told.
pub(super) fn begin(
    orders: Orders,
) -> Result<(Manager, oneshot::Receiver<Result<(), ManagerError>>), ManagerError> {
    let (stop, stopping) = watch::channel(None);
    let (reply, started) = oneshot::channel();
    let view = View {
        status: Arc::clone(&orders.status),
    };
    let instance = orders.instance.clone();
    let thread = OwnThread::start(&instance, move || live(orders, stopping, reply));
    let thread = thread
        .map_err(|error| ManagerError::Problem(format!("cannot start a thread: {error}").into()))?;
    Ok((Manager { view, stop, thread }, started))
}

/// The life of a manager, from its first to its last task.
fn live(
    orders: Orders,
    stop: watch::Receiver<Option<Shutdown>>,
    reply: Started,
) -> Result<(), ManagerError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| ManagerError::Problem(format!("cannot make a runtime: {error}").into()))?;
    let authority = Arc::new(Authority::default());
    let status = Arc::clone(&orders.status);
    let is_strict = orders.settings.leader.overdue == Overdue::Abort;
    let held = Arc::clone(&authority);
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let span = span_of(&orders);
        runtime.block_on(drive(orders, held, stop, reply).instrument(span))
    }));
    authority.set(None);
    status.state.set(State::Shutdown);
    let outcome = lived.unwrap_or_else(|panic| {
        let why = panic_text(panic.as_ref());
        let runs = status.is_working.load(Ordering::Relaxed);
        status.nothing_left();
        if runs && is_strict {
            // Nobody is left who could stop what runs.
            eprintln!("divvy: ending the process: {why}");
            std::process::abort();
        }
        Err(ManagerError::Ended(why.into()))
    });
    runtime.shutdown_timeout(ENDING);
    outcome
}

/// What everything that a manager logs belongs to.
fn span_of(orders: &Orders) -> tracing::Span {
    let cluster = match &orders.store {
        StoreChoice::At(_, settings) => Some(settings.cluster.as_str()),
        StoreChoice::Open(_) => None,
    };
    tracing::info_span!("manager", cluster, instance = &*orders.instance)
}

async fn drive(
    orders: Orders,
    authority: Arc<Authority>,
    stop: watch::Receiver<Option<Shutdown>>,
    reply: Started,
) -> Result<(), ManagerError> {
    let begun = boottime();
    let store = match open(&orders, stop.clone()).await {
        Ok(store) => store,
        Err(error) => {
            let _unheard = reply.send(Err(error.clone()));
            return Err(error);
        }
    };
    let (driver, inputs) = mpsc::channel(INPUTS_MAX);
    let mut settings = orders.settings.leader.clone();
    settings.store_forgets = store.forgets();
    let limits = Limits::of(&orders.settings);
    let setup = MemberSetup {
        settings: settings.clone(),
        instance: orders.instance,
        strategy: Arc::new(Aside::new(Arc::new(Measured {
            strategy: orders.strategy,
            status: Arc::clone(&orders.status),
        }))),
        previous: orders.previous,
        description: orders.status.description.borrow().clone(),
        seed: fastrand::u64(..),
        external_election: orders.agent.is_some(),
        hooks_wait: true,
        retries: orders.settings.retry.retries(),
        value_bytes_max: store.value_bytes_max(),
        batches: Batches::default(),
    };
    let agent = orders
        .agent
        .map(|agent| Agent::new(agent, orders.runtime.clone(), &settings, driver.clone()));
    let discovery = Discovery {
        source: orders.source,
        runtime: orders.runtime.clone(),
        limit: settings.operation_timeout,
        retry: orders.settings.retry,
        is_asked: false,
    };
    let calls = Calls::new(
        orders.hooks,
        orders.runtime,
        limits,
        Arc::clone(&authority),
        driver.clone(),
        Arc::clone(&orders.status),
    );
    let parts = Parts {
        member: Member::new(setup, clock()),
        settings,
        retry: orders.settings.retry,
        store,
        status: orders.status,
        authority,
        calls,
        discovery,
        agent,
        inputs,
        driver,
        wishes: orders.wishes,
        stop,
        default_shutdown: orders.settings.shutdown,
        startup: Startup::new(reply, begun),
        events: orders.events,
    };
    Driver::new(parts).run().await
}

fn clock() -> Clock {
    Clock {
        now: boottime(),
        unix_ms: unix_ms(),
    }
}

/// Opens the store, unless it is to stop meanwhile. One that is not reached is
/// tried again, for as long as a start may take.
async fn open(
    orders: &Orders,
    mut stop: watch::Receiver<Option<Shutdown>>,
) -> Result<Arc<dyn KeyValue>, ManagerError> {
    let (url, settings) = match &orders.store {
        StoreChoice::Open(store) => return Ok(Arc::clone(store)),
        StoreChoice::At(url, settings) => (url, settings),
    };
    let retry = orders.settings.retry;
    let limit = orders.settings.leader.startup_timeout;
    let last = Cell::new(None);
    let settings = reach(settings, &orders.settings.leader);
    let opening = async {
        let mut tries = 0;
        loop {
            let error = match open_key_value(url, &settings).await {
                Ok(store) => return Ok(store),
                Err(error) if error.kind() == StoreErrorKind::Unavailable => error,
                Err(error) => return Err(ManagerError::Store(error)),
            };
            if tries >= retry.max_retries {
                let attempts = match tries {
                    0 => "1 attempt".to_owned(),
                    again => format!("{} attempts", again + 1),
                };
                let why = format!("in {attempts}: {error}");
                return Err(ManagerError::Unreached(why.into()));
            }
            let delay = retry.delay(tries);
            tries += 1;
            tracing::warn!(
                "{error}; trying again in {} ({tries} of {}), each time for up to {}, until \
                 startup_timeout ({}) is over",
                Span(delay),
                retry.max_retries,
                Span(settings.connect_timeout),
                Span(limit),
            );
            last.set(Some(error));
            sleep(delay).await;
        }
    };
    tokio::select! {
        opened = timeout(limit, opening) => opened.unwrap_or_else(|_elapsed| {
            let last: Option<StoreError> = last.take();
            let last = last.map_or_else(|| "no answer".to_owned(), |error| error.to_string());
            let why = format!("within startup_timeout ({}): {last}", Span(limit));
            Err(ManagerError::Unreached(why.into()))
        }),
        _ = stop.changed() => Err(ManagerError::Ended("it was stopped before it had started".into())),
    }
}
