//! A connection that many share and that comes back.
//!
//! One task keeps it: it pings a server that is silent, connects anew with
//! growing delays when the connection is lost, and asks the server each time
//! who it is. Callers never wait for it: while there is no connection they
//! fail at once.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection};
use ::redis::{Pipeline, Value};
use divvy_core::store::{StoreError, StoreErrorKind};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::endpoint::Endpoint;
use super::failure::{self, Nature};
use super::server::Server;
use crate::store::backoff::Backoff;
use crate::store::connection::{Connection, ConnectionReport, tell_waiting};
use crate::store::settings::StoreSettings;

const RETRY_FIRST: Duration = Duration::from_millis(50);
/// Longest time for one try to connect, so that one that goes nowhere does not
/// use up all.
const TRY_MAX: Duration = Duration::from_secs(5);

/// After so many pings the server is asked again whether it will do.
const LOOK_PINGS: u32 = 5;

/// That the server may begin to evict is told again only so often.
const EVICTION_TOLD_EVERY: Duration = Duration::from_secs(60);

/// What becomes of those who are connected to a server that may evict keys.
/// Nobody begins to use one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eviction {
    /// The connection is given up: a record that is lost may let another owner
    /// begin.
    GiveUp,
    /// They go on, for they take no new leases: what is evicted has no other
    /// owner before its own has noticed.
    GoOn,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    connect: Duration,
    operation: Duration,
    retry_longest: Duration,
    ping: Duration,
}

impl From<&StoreSettings> for Timing {
    fn from(settings: &StoreSettings) -> Self {
        Self {
            connect: settings.connect_timeout,
            operation: settings.operation_timeout,
            retry_longest: settings.reconnect_delay_max,
            ping: settings.ping_interval,
        }
    }
}

impl Timing {
    pub(super) fn backoff(&self) -> Backoff {
        Backoff::new(RETRY_FIRST, self.retry_longest)
    }

    pub(super) const fn connect(&self) -> Duration {
        self.connect
    }

    pub(super) const fn operation(&self) -> Duration {
        self.operation
    }
}

/// A connection that is being carried. Dropping it ends it.
pub(super) struct Carried {
    pub(super) connection: MultiplexedConnection,
    pub(super) server: Server,
    heard: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
    /// A caller found out that this connection will not do.
    given_up: Arc<Notify>,
    driver: JoinHandle<()>,
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.driver.abort();
        self.ended.store(true, Ordering::Release);
    }
}

impl Carried {
    /// Connects within a bound, and asks the server who it is.
    pub(super) async fn connect(
        endpoint: &Endpoint,
        bound: Duration,
        pushes: Option<Arc<dyn AsyncPushSender>>,
    ) -> Result<Self, StoreError> {
        let connecting = async {
            let connected = endpoint.connect(pushes).await?;
            let ended = Arc::new(AtomicBool::new(false));
            let at_end = Arc::clone(&ended);
            let driver = tokio::spawn(async move {
                connected.driver.await;
                at_end.store(true, Ordering::Release);
            });
            let mut carried = Self {
                connection: connected.connection,
                server: Server::default(),
                heard: connected.heard,
                ended,
                given_up: Arc::default(),
                driver,
            };
            let asked = Server::ask(&mut carried.connection).await;
            let checked = asked.and_then(|server| server.check().map(|()| server));
            carried.server = checked.map_err(|error| endpoint.place_it(&error))?;
            Ok(carried)
        };
        match timeout(bound.min(TRY_MAX), connecting).await {
            Ok(result) => result,
            Err(_elapsed) => Err(endpoint.unanswered()),
        }
    }

    /// Waits until the connection is lost, and says why. A server that has
    /// been silent is pinged, and one that then stays silent counts as lost;
    /// one that is busy with large answers does not.
    pub(super) async fn lost(&mut self, timing: &Timing) -> String {
        loop {
            let heard = self.heard.load(Ordering::Acquire);
            let silent = || self.heard.load(Ordering::Acquire) == heard;
            tokio::select! {
                _ended = &mut self.driver => return "the connection was lost".to_owned(),
                () = self.given_up.notified() => {
                    return "the connection was given up".to_owned();
                }
                () = sleep(timing.ping) => {}
            }
            if !silent() {
                continue;
            }
            let mut connection = self.connection.clone();
            let ping = ::redis::cmd("PING");
            match timeout(timing.ping, connection.send_packed_command(&ping)).await {
                Ok(Ok(Value::ServerError(error))) if failure::disqualifies(&error) => {
                    return failure::refused(&error).to_string();
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return failure::of_loss(&error),
                Err(_elapsed) if !silent() => {}
                Err(_elapsed) => {
                    return format!("the server did not answer a ping for {:?}", timing.ping);
                }
            }
        }
    }
}

/// Waits until the server says that it will not do any more. Who has set it
/// otherwise while it runs has not cut the connection.
async fn unfit(mut connection: MultiplexedConnection, shared: &Shared) -> StoreError {
    let every = shared.timing.ping * LOOK_PINGS;
    loop {
        sleep(every).await;
        let asked = timeout(every, Server::ask(&mut connection)).await;
        // One that does not answer is noticed by its silence.
        let Ok(Ok(server)) = asked else {
            continue;
        };
        if let Err(error) = shared.check(&server) {
            return error;
        }
        shared.learn(server);
    }
}

/// The shared connection. Clones share it; it ends with the last.
#[derive(Clone)]
pub(super) struct Link {
    shared: Arc<Shared>,
    _keeper: Arc<Keeper>,
}

struct Shared {
    endpoint: Arc<Endpoint>,
    timing: Timing,
    state: Mutex<State>,
    report: ConnectionReport,
    eviction: Eviction,
    /// When it was last told that the server may begin to evict.
    eviction_told: Mutex<Option<Instant>>,
    /// The server of the last connection, as it last described itself.
    server: Mutex<Server>,
}

impl Shared {
    /// Whether a server that is in use will do.
    fn check(&self, server: &Server) -> Result<(), StoreError> {
        server.check()?;
        if self.eviction == Eviction::GiveUp {
            server.check_eviction()?;
        }
        server.check_writable()
    }

    /// Takes in how the server describes itself.
    fn learn(&self, server: Server) {
        if let Some(risk) = server.eviction_risk() {
            let mut told = locked(&self.eviction_told);
            if told.is_none_or(|told| told.elapsed() >= EVICTION_TOLD_EVERY) {
                *told = Some(Instant::now());
                let new = match server.check_eviction() {
                    Ok(()) => "",
                    Err(_) => "; no new leases are taken until then",
                };
                tracing::error!("{}: {risk}{new}", self.endpoint);
            }
        }
        *locked(&self.server) = server;
    }
}

enum State {
    Up(Live),
    Down(StoreError),
}

/// What callers use of a connection.
#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    ended: Arc<AtomicBool>,
    given_up: Arc<Notify>,
}

struct Keeper(JoinHandle<()>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.shared.endpoint).finish()
    }
}

impl Link {
    /// Connects within the connection timeout. What a retry cannot mend is an
    /// error at once.
    pub(super) async fn open(
        endpoint: Endpoint,
        timing: Timing,
        eviction: Eviction,
    ) -> Result<Self, StoreError> {
        let deadline = Instant::now() + timing.connect;
        let mut backoff = timing.backoff();
        let mut is_told = false;
        let carried = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let tried = Carried::connect(&endpoint, left, None).await;
            let error = match tried {
                Ok(carried) => break carried,
                Err(error) if error.kind() != StoreErrorKind::Unavailable => return Err(error),
                Err(error) => error,
            };
            if !std::mem::replace(&mut is_told, true) {
                // Whoever waits for it need not wonder why.
                tell_waiting(&error, timing.connect);
            }
            // A last try fits before the deadline, however long the delay.
            let last = deadline - RETRY_FIRST;
            let again = Instant::now() + backoff.delay();
            if Instant::now() >= last {
                return Err(StoreError::unavailable(format_args!(
                    "{error} (tried for {:?})",
                    timing.connect
                )));
            }
            tokio::time::sleep_until(again.min(last)).await;
        };
        let server = &carried.server;
        let checked = server.check_eviction();
        checked
            .and_then(|()| server.check_writable())
            .map_err(|error| endpoint.place_it(&error))?;
        let shared = Arc::new(Shared {
            endpoint: Arc::new(endpoint),
            timing,
            state: Mutex::new(State::Up(Live::of(&carried))),
            report: ConnectionReport::connected(),
            eviction,
            eviction_told: Mutex::default(),
            server: Mutex::default(),
        });
        shared.learn(carried.server.clone());
        let keeper = tokio::spawn(keep(Arc::clone(&shared), carried));
        Ok(Self {
            shared,
            _keeper: Arc::new(Keeper(keeper)),
        })
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    pub(super) fn timing(&self) -> Timing {
        self.shared.timing
    }

    pub(super) fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.report.subscribe()
    }

    /// The server of the last connection.
    pub(super) fn server(&self) -> Server {
        locked(&self.shared.server).clone()
    }

    /// Begins an operation, which has to end within the operation timeout.
    pub(super) fn call(&self, nature: Nature) -> Result<Call, StoreError> {
        match &*locked(&self.shared.state) {
            State::Down(error) => Err(error.clone()),
            State::Up(live) if live.ended.load(Ordering::Acquire) => {
                Err(StoreError::unavailable("the connection was lost"))
            }
            State::Up(live) => Ok(Call {
                shared: Arc::clone(&self.shared),
                live: live.clone(),
                nature,
                deadline: Instant::now() + self.shared.timing.operation,
            }),
        }
    }
}

impl Live {
    fn of(carried: &Carried) -> Self {
        Self {
            connection: carried.connection.clone(),
            ended: Arc::clone(&carried.ended),
            given_up: Arc::clone(&carried.given_up),
        }
    }
}

/// One operation, of one or more requests, on one connection.
pub(super) struct Call {
    shared: Arc<Shared>,
    live: Live,
    nature: Nature,
    deadline: Instant,
}

impl Call {
    pub(super) const fn nature(&self) -> Nature {
        self.nature
    }

    /// Sends commands and waits for their replies, refusals among them.
    pub(super) async fn send(&self, pipeline: &Pipeline) -> Result<Vec<Value>, StoreError> {
        if self.live.ended.load(Ordering::Acquire) {
            return Err(StoreError::unavailable("the connection was lost"));
        }
        let mut connection = self.live.connection.clone();
        let sent = connection.send_packed_commands(pipeline, 0, pipeline.len());
        let replies = match timeout_at(self.deadline, sent).await {
            Ok(Ok(replies)) => replies,
            Ok(Err(error)) => {
                // The next caller need not find out by itself.
                self.live.ended.store(true, Ordering::Release);
                self.live.given_up.notify_one();
                return Err(self.nature.unanswered(failure::of_loss(&error)));
            }
            Err(_elapsed) => {
                return Err(self.nature.unanswered(format_args!(
                    "no answer within {:?}",
                    self.shared.timing.operation
                )));
            }
        };
        let doubtful = |reply: &Value| matches!(reply, Value::ServerError(error) if failure::disqualifies(error));
        if replies.iter().any(doubtful) {
            self.live.given_up.notify_one();
        }
        Ok(replies)
    }

    /// Sends one command; a refusal is an error.
    pub(super) async fn ask(&self, command: ::redis::Cmd) -> Result<Value, StoreError> {
        let mut pipeline = Pipeline::with_capacity(1);
        // The word after the command is its key, if it has one.
        let key = command.args_iter().nth(1).and_then(|word| match word {
            ::redis::Arg::Simple(key) => Some(String::from_utf8_lossy(key).into_owned()),
            _ => None,
        });
        pipeline.add_command(command);
        match self.send(&pipeline).await?.pop() {
            Some(Value::ServerError(error)) => Err(failure::refused_on(&error, key.as_slice())),
            Some(value) => Ok(value),
            None => Err(super::reply::unexpected("a command")),
        }
    }
}

/// Keeps the connection up for as long as anybody uses it.
async fn keep(shared: Arc<Shared>, mut carried: Carried) {
    loop {
        let looking = unfit(carried.connection.clone(), &shared);
        let reason = tokio::select! {
            reason = carried.lost(&shared.timing) => reason,
            error = looking => error.to_string(),
        };
        drop(carried);
        let down = StoreError::unavailable(format_args!("{}: {reason}", shared.endpoint));
        *locked(&shared.state) = State::Down(down);
        shared.report.lost(reason);
        carried = regain(&shared).await;
        shared.learn(carried.server.clone());
        // Counted before anything is sent on it.
        shared.report.regained();
        *locked(&shared.state) = State::Up(Live::of(&carried));
    }
}

async fn regain(shared: &Shared) -> Carried {
    let mut backoff = shared.timing.backoff();
    loop {
        sleep(backoff.delay()).await;
        let tried = Carried::connect(&shared.endpoint, shared.timing.connect, None).await;
        let error = match tried {
            Ok(carried) => match shared.check(&carried.server) {
                Ok(()) => return carried,
                // It may be on its way to become the primary.
                Err(error) if carried.server.check_writable().is_err() => {
                    StoreError::unavailable(error)
                }
                Err(error) => shared.endpoint.place_it(&error),
            },
            Err(error) => error,
        };
        shared.report.lost(error.to_string());
        *locked(&shared.state) = State::Down(error);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
