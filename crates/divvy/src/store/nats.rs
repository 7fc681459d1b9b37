//! The store in a NATS JetStream key-value bucket.
//!
//! A key is the subject `$KV.BUCKET.CLUSTER.KEY`, all of it encoded; several
//! clusters can share a bucket. Every write, deletions included, carries the
//! sequence that it expects, so one that is applied late can do no harm.
//!
//! Server and bucket are checked when the store is opened and on every new
//! connection, the bucket also whenever the [incarnation](Incarnation) is asked
//! for, and refused if they are unfit: a server below 2.10.26, or below
//! 2.11.11 for several replicas, or one that accepts a write whose condition
//! does not hold; a bucket that keeps more or less than one value of a key,
//! lets it age, loses the old when full, or has another number of replicas. A
//! missing bucket is made. Nothing is ever edited.
//!
//! A bucket that is deleted while in use fails one operation of each member
//! and is then made anew, with another [incarnation](Incarnation).

pub(crate) mod api;
mod bucket;
mod consumer;
pub(crate) mod events;
mod examination;
pub(crate) mod fault;
mod hints;
pub(crate) mod link;
mod misfits;
pub(crate) mod plan;
mod position;
pub(crate) mod replies;
mod sequence;
mod shared;
mod sweeper;
mod tls;
pub(crate) mod version;

pub(crate) use examination::examine;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::Invalid;
use divvy_core::store::{
    Entry, Expected, Incarnation, Key, Outcome, Prefix, Revision, StoreError, StoreErrorKind,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use self::hints::NatsHints;
use self::link::Link;
use self::plan::Plan;
use self::shared::Shared;
use super::backoff::Backoff;
use super::connection::{Connection, tell_waiting};
use super::settings::StoreSettings;
use super::url::{StoreKind, StoreUrl};
use super::watch::Watch;
use super::{KeyValue, Store};

const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(1);

/// A bucket of a NATS server or cluster, seen by the members of one cluster.
/// Clones share the connection, which ends with the last of them and of their
/// watches.
#[derive(Clone)]
pub struct NatsStore {
    shared: Arc<Shared>,
    address: String,
}

impl NatsStore {
    /// The clusters that have an assignment.
    pub(super) async fn clusters(&self) -> Result<BTreeSet<String>, StoreError> {
        self.shared.clusters().await
    }

    /// Removes all keys of the cluster, and what is left of deleted ones.
    pub(super) async fn erase(&self) -> Result<(), StoreError> {
        self.shared.erase().await
    }

    /// Connects, and makes or checks the bucket. Servers that cannot be
    /// reached are tried again until `connect_timeout` is over.
    pub async fn open(url: &StoreUrl, settings: &StoreSettings) -> Result<Self, StoreError> {
        settings.check()?;
        if url.kind() != StoreKind::Nats {
            return Err(Invalid::new("store", url, "is not a NATS server's address").into());
        }
        let deadline = Instant::now() + settings.connect_timeout;
        let plan = read_plan(url, settings).await?;
        let mut last = None;
        let opening = Self::open_by(url, &plan, settings, deadline, &mut last);
        let opened = match timeout_at(deadline, opening).await {
            Ok(opened) => opened,
            Err(_elapsed) => {
                let nothing = || StoreError::unavailable("no NATS server answers");
                Err(last.unwrap_or_else(nothing))
            }
        };
        let within = settings.connect_timeout;
        match opened {
            Ok(shared) => Ok(Self {
                shared,
                address: url.to_string(),
            }),
            Err(error) if error.kind() == StoreErrorKind::Unavailable => Err(StoreError::new(
                error.kind(),
                format_args!("{url} is not to be had within {within:?}: {error}"),
            )),
            Err(error) => Err(StoreError::new(
                error.kind(),
                format_args!("{url}: {error}"),
            )),
        }
    }

    /// Tries until it works or can't ever; `last` is why it has not yet.
    async fn open_by(
        url: &StoreUrl,
        plan: &Plan,
        settings: &StoreSettings,
        deadline: Instant,
        last: &mut Option<StoreError>,
    ) -> Result<Arc<Shared>, StoreError> {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
        loop {
            let attempt = async {
                let link = Link::connect(plan).await?;
                Shared::open(link, settings, plan.servers(), deadline).await
            };
            match attempt.await {
                Err(error) if error.kind() == StoreErrorKind::Unavailable => {
                    tracing::debug!(%error, "cannot open the store yet");
                    if last.is_none() {
                        tell_waiting(format_args!("{url}: {error}"), settings.connect_timeout);
                    }
                    *last = Some(error);
                }
                ended => return ended,
            }
            sleep(backoff.delay()).await;
        }
    }
}

/// A client of the NATS library, reached and logged in as a store would be: for
/// what divvy does not do, such as publishing.
pub async fn connect(
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<async_nats::Client, StoreError> {
    settings.check()?;
    let plan = read_plan(url, settings).await?;
    let link = Link::connect(&plan).await?;
    Ok(link.client())
}

/// Reads files and the environment, which may block.
pub(crate) async fn read_plan(
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<Plan, StoreError> {
    let (url, settings) = (url.clone(), settings.clone());
    let reading = tokio::task::spawn_blocking(move || Plan::new(&url, &settings));
    reading.await.expect("reading settings does not panic")
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NatsStore").field(&self.describe()).finish()
    }
}

#[async_trait]
impl Store for NatsStore {
    fn describe(&self) -> String {
        let version = self.shared.link.server().version;
        let bucket = &self.shared.bucket;
        let (name, replicas) = (&bucket.name, bucket.replicas());
        format!(
            "NATS {version} at {}, bucket {name}, replicas {replicas}",
            self.address
        )
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        self.shared.incarnation().await
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.shared.link.events().report.subscribe()
    }

    fn connects(&self) -> u64 {
        self.shared.link.connects()
    }
}

#[async_trait]
impl KeyValue for NatsStore {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        self.shared.get(key).await
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        self.shared.compare_and_set(key, expected, value).await
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        self.shared.delete(key, revision).await
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        self.shared.list(prefix).await
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        let hints = NatsHints::start(Arc::clone(&self.shared), prefix.clone()).await?;
        let store = Arc::new(self.clone());
        Ok(Watch::start(store, prefix.clone(), Box::new(hints)))
    }

    fn value_bytes_max(&self) -> usize {
        self.shared.value_bytes_max()
    }
}
