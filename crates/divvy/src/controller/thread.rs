//! The thread of a controller: its driver and store live on it, so that what
//! an application does to its own runtime does not hold up renewals.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use divvy_core::lease::{Batches, Member, MemberSetup, SelfDescription};
use divvy_core::store::{StoreErrorKind, WorkerId};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::Controller;
use super::consumer::ConsumerFactory;
use super::consumers::Consumers;
use super::driver::{Driver, INPUTS_MAX, Parts};
use super::error::ControllerError;
use super::event::Events;
use super::settings::ControllerSettings;
use super::status::{ControllerView, Status, Wish};
use crate::manager::calls::panic_text;
use crate::manager::settings::span::Span;
use crate::own_thread::OwnThread;
use crate::store::backoff::Backoff;
use crate::store::clock::boottime;
use crate::store::{LeaseStoreChoice, Leases, open_leases};

/// How a start went.
pub(super) type Started = oneshot::Sender<Result<(), ControllerError>>;

/// How long a runtime may take to end what blocks.
const ENDING: Duration = Duration::from_secs(1);
/// Delays between two tries to open the store.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LONGEST: Duration = Duration::from_secs(5);

/// That it is not reached is told only so often.
const TOLD_EVERY: Duration = Duration::from_secs(3);

/// What a controller is made of.
pub(super) struct Orders {
    pub(super) store: LeaseStoreChoice,
    pub(super) factory: Arc<dyn ConsumerFactory>,
    pub(super) settings: ControllerSettings,
    pub(super) worker: String,
    pub(super) status: Arc<Status>,
    pub(super) wishes: mpsc::Receiver<Wish>,
    pub(super) runtime: Handle,
    pub(super) events: Events,
}

/// Starts the thread. Gives the controller, and where the start will be told.
pub(super) fn begin(
    orders: Orders,
) -> Result<(Controller, oneshot::Receiver<Result<(), ControllerError>>), ControllerError> {
    let (stop, stopping) = watch::channel(false);
    let (reply, started) = oneshot::channel();
    let view = ControllerView {
        status: Arc::clone(&orders.status),
    };
    let worker = orders.worker.clone();
    let thread = OwnThread::start(&worker, move || live(orders, stopping, reply));
    let thread = thread.map_err(|error| {
        ControllerError::Problem(format!("cannot start a thread: {error}").into())
    })?;
    Ok((Controller { view, stop, thread }, started))
}

/// The life of a controller, from its first to its last task.
fn live(
    orders: Orders,
    stop: watch::Receiver<bool>,
    reply: Started,
) -> Result<(), ControllerError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        ControllerError::Problem(format!("cannot make a runtime: {error}").into())
    })?;
    let status = Arc::clone(&orders.status);
    let lived = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(drive(orders, stop, reply))
    }));
    status.joined.send_replace(false);
    status.owned.send_replace(Arc::default());
    let outcome = lived.unwrap_or_else(|panic| {
        let why = panic_text(panic.as_ref());
        Err(ControllerError::Ended(why.into()))
    });
    runtime.shutdown_timeout(ENDING);
    status.ended.send_replace(true);
    outcome
}

async fn drive(
    orders: Orders,
    stop: watch::Receiver<bool>,
    reply: Started,
) -> Result<(), ControllerError> {
    let begun = boottime();
    let opened = open(&orders, stop.clone()).await.and_then(|store| {
        let worker = WorkerId::new(store.cluster(), &orders.worker)?;
        Ok((store, worker))
    });
    let (store, worker) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let _unheard = reply.send(Err(error.clone()));
            return Err(error);
        }
    };
    let settings = orders.settings.lease.clone();
    let (driver, inputs) = mpsc::channel(INPUTS_MAX);
    let description: SelfDescription = *orders.status.description.borrow();
    let setup = MemberSetup {
        settings: settings.clone(),
        worker: worker.clone(),
        groups: orders.settings.groups.clone(),
        dynamic: orders.settings.dynamic,
        description,
        seed: fastrand::u64(..),
        batches: Batches::default(),
        hooks_wait: true,
    };
    let consumers = Consumers::new(
        orders.factory,
        orders.runtime,
        orders.settings.hook_concurrency,
        settings.start_deadline,
        driver.clone(),
    );
    let parts = Parts {
        member: Member::new(setup, boottime()),
        settings,
        startup_limit: orders.settings.startup_timeout,
        worker,
        store,
        status: orders.status,
        consumers,
        inputs,
        driver,
        wishes: orders.wishes,
        stop,
        started: Some(reply),
        begun,
        events: orders.events,
    };
    Driver::new(parts).run().await
}

/// Opens the store, unless it is to stop meanwhile. One that is not reached is
/// tried again, for as long as a start may take.
async fn open(
    orders: &Orders,
    mut stop: watch::Receiver<bool>,
) -> Result<Arc<dyn Leases>, ControllerError> {
    let (url, settings) = match &orders.store {
        LeaseStoreChoice::Open(store) => return Ok(Arc::clone(store)),
        LeaseStoreChoice::At(url, settings) => (url, settings),
    };
    let limit = orders.settings.startup_timeout;
    let mut settings = settings.clone();
    // It says why before the time is over.
    settings.connect_timeout = settings.connect_timeout.min(limit * 3 / 4);
    let mut last = None;
    let opening = async {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
        let mut told: Option<Instant> = None;
        loop {
            match open_leases(url, &settings).await {
                Ok(store) => return Ok(store),
                Err(error) if error.kind() == StoreErrorKind::Unavailable => {
                    let delay = backoff.delay();
                    if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
                        told = Some(Instant::now());
                        let each = Span(settings.connect_timeout);
                        let text = format!(
                            "{error}; trying again in {}, each time for up to {each}, until \
                             startup_timeout ({}) is over",
                            Span(delay),
                            Span(limit)
                        );
                        tracing::warn!("{text}");
                        let problem = super::event::ControllerEventKind::Problem;
                        orders.events.tell(|| problem(text.into()));
                    }
                    last = Some(error);
                    sleep(delay).await;
                }
                Err(error) => return Err(ControllerError::Store(error)),
            }
        }
    };
    let opened = tokio::select! {
        opened = timeout(limit, opening) => opened,
        _ = stop.changed() => {
            return Err(ControllerError::Ended("it was stopped before it had started".into()));
        }
    };
    opened.unwrap_or_else(|_elapsed| {
        let last = last.map(|error| error.to_string().into());
        Err(ControllerError::StartTimedOut { limit, last })
    })
}
