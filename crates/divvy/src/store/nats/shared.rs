//! What the handles of one store share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use divvy_core::store::{
    Entry, Expected, Incarnation, Key, Outcome, Prefix, Revision, StoreError, decode_part,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep, timeout_at};

use super::api::{self, Stored, StreamInfo, Written};
use super::bucket::Bucket;
use super::consumer::{Begin, Consumer, Delivered};
use super::fault::Fault;
use super::link::Link;
use super::sequence::{deletion_revision, expected_sequence, value_revision};
use super::sweeper::{self, Marker};
use crate::store::bounds::{VALUE_BYTES_MAX, check_listed, check_value};
use crate::store::settings::StoreSettings;

/// How often a creation looks again because the deletion marker that it found
/// has changed meanwhile.
const CREATION_TRIES_MAX: usize = 8;

/// How often a replicated bucket is asked again whether the write before is
/// done, and how much longer each time.
const UNSETTLED_TRIES_MAX: u32 = 8;
const UNSETTLED_DELAY: Duration = Duration::from_millis(2);

pub(super) struct Shared {
    pub(super) link: Link,
    pub(super) bucket: Bucket,
    /// How often a watch's consumer says that it is there.
    pub(super) heartbeat: Duration,
    operation_timeout: Duration,
    /// How many servers the address names.
    servers: usize,
    /// The connection on which server and bucket were found fit; 0 is none.
    fit_on: AtomicU64,
    checking: Mutex<()>,
    /// The largest message that the bucket takes, in bytes.
    message_bytes_max: AtomicUsize,
    markers: mpsc::Sender<Marker>,
}

impl Shared {
    /// Takes over a new connection, and checks server and bucket.
    pub(super) async fn open(
        link: Link,
        settings: &StoreSettings,
        servers: usize,
        deadline: Instant,
    ) -> Result<Arc<Self>, StoreError> {
        let (markers, swept) = mpsc::channel(sweeper::WAITING_MAX);
        let heartbeats = Duration::from_millis(200)..=Duration::from_secs(10);
        let shared = Arc::new(Self {
            link,
            bucket: Bucket::new(settings),
            heartbeat: settings
                .ping_interval
                .clamp(*heartbeats.start(), *heartbeats.end()),
            operation_timeout: settings.operation_timeout,
            servers,
            fit_on: AtomicU64::new(0),
            checking: Mutex::new(()),
            message_bytes_max: AtomicUsize::new(usize::MAX),
            markers,
        });
        shared.ready(deadline).await?;
        tokio::spawn(sweeper::run(Arc::downgrade(&shared), swept));
        Ok(shared)
    }

    /// When an operation that begins now must have ended.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.operation_timeout
    }

    /// A write that begins now.
    fn write_limits(&self) -> WriteLimits {
        WriteLimits {
            connects: self.link.connects(),
            deadline: self.deadline(),
        }
    }

    pub(super) fn value_bytes_max(&self) -> usize {
        let bucket = self.message_bytes_max.load(Ordering::Acquire);
        VALUE_BYTES_MAX.min(self.link.message_bytes_max().min(bucket) / 2)
    }

    /// Makes sure that this connection's server and bucket have been checked.
    async fn ready(&self, deadline: Instant) -> Result<(), StoreError> {
        let what = || format!("bucket '{}'", self.bucket.name);
        self.link
            .check_up()
            .map_err(|fault| fault.of_read(what()))?;
        if self.fit_on.load(Ordering::Acquire) == self.link.connects() {
            return Ok(());
        }
        let checking = timeout_at(deadline, self.check(deadline)).await;
        checking.unwrap_or_else(|_elapsed| Err(Fault::TimedOut.of_read(what())))
    }

    async fn check(&self, deadline: Instant) -> Result<(), StoreError> {
        let _one_at_a_time = self.checking.lock().await;
        let connects = self.link.connects();
        if self.fit_on.load(Ordering::Acquire) == connects {
            return Ok(());
        }
        let info = self.bucket.ensure(&self.link, deadline).await?;
        if self.link.server().cluster.is_none() {
            self.check_alone(&info)?;
        }
        let limit = usize::try_from(info.config.max_msg_size).ok();
        let limit = limit.filter(|bytes| *bytes > 0).unwrap_or(usize::MAX);
        self.message_bytes_max.store(limit, Ordering::Release);
        self.fit_on.store(connects, Ordering::Release);
        Ok(())
    }

    /// A server that is in no cluster must be the only one, or else members
    /// would not all see the same incarnation of the bucket.
    fn check_alone(&self, info: &StreamInfo) -> Result<(), StoreError> {
        let name = self.link.server().server_name;
        if self.servers > 1 {
            return Err(StoreError::unfit(format_args!(
                "the address names {} servers, but '{name}' is in no cluster: each would have a \
                 bucket of its own",
                self.servers
            )));
        }
        let leader = info
            .cluster
            .as_ref()
            .and_then(|place| place.leader.as_ref());
        match leader.filter(|leader| **leader != name) {
            Some(leader) => Err(StoreError::unfit(format_args!(
                "the bucket is on server '{leader}', but the address leads to '{name}': connect \
                 to '{leader}' itself, so that its restarts are seen"
            ))),
            None => Ok(()),
        }
    }

    /// Notices when the bucket has gone, so that the next operation makes it
    /// anew.
    fn seen(&self, fault: Fault) -> Fault {
        if fault.is_no_bucket() {
            self.fit_on.store(0, Ordering::Release);
        }
        fault
    }

    pub(super) async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        let deadline = self.deadline();
        loop {
            self.ready(deadline).await?;
            let connects = self.link.connects();
            let asked = self.bucket.info(&self.link, deadline).await;
            let info = asked.map_err(|fault| self.seen(fault).of_read("incarnation"))?;
            // Somebody may have edited it: then every operation asks first.
            let checked = self.bucket.check(&info.config);
            checked.inspect_err(|_misfits| self.fit_on.store(0, Ordering::Release))?;
            if connects == self.link.connects() {
                return Ok(self.incarnation_of(&info));
            }
        }
    }

    /// One server may forget what it acknowledged whenever it is started, so
    /// its own id is part of it. In a cluster, members are connected to
    /// different servers, and only what they all see can be.
    fn incarnation_of(&self, info: &StreamInfo) -> Incarnation {
        let server = self.link.server();
        match server.cluster {
            None => Incarnation::new(format!("{} {}", info.created, server.server_id)),
            Some(_) => Incarnation::new(&info.created),
        }
    }

    pub(super) async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        let deadline = self.deadline();
        self.ready(deadline).await?;
        let found = self.last(deadline, &self.bucket.subject(key)).await;
        let found = found.map_err(|fault| fault.of_read(format_args!("get '{key}'")))?;
        let live = found.filter(|stored| !stored.is_marker);
        Ok(live.and_then(|stored| {
            Some(Entry {
                key: key.clone(),
                value: stored.value.into(),
                revision: value_revision(stored.sequence)?,
            })
        }))
    }

    pub(super) async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        check_value(value, self.value_bytes_max())?;
        let limits = self.write_limits();
        self.ready(limits.deadline).await?;
        let subject = self.bucket.subject(key);
        let written = match expected {
            Expected::Absent => self.create(limits, &subject, value).await,
            Expected::At(revision) => match expected_sequence(revision) {
                Some(sequence) => {
                    self.write(limits, &subject, sequence, Written::Value(value))
                        .await
                }
                None => return Ok(Outcome::Conflict),
            },
        };
        outcome(written, value_revision)
            .map_err(|fault| fault.of_write(format_args!("compare_and_set '{key}'")))
    }

    pub(super) async fn delete(
        &self,
        key: &Key,
        revision: Revision,
    ) -> Result<Outcome<Revision>, StoreError> {
        let limits = self.write_limits();
        self.ready(limits.deadline).await?;
        let Some(sequence) = expected_sequence(revision) else {
            return Ok(Outcome::Conflict);
        };
        let subject = self.bucket.subject(key);
        let written = self
            .write(limits, &subject, sequence, Written::Marker)
            .await;
        if let Ok(sequence) = written {
            self.sweep(subject, sequence);
        }
        outcome(written, deletion_revision)
            .map_err(|fault| fault.of_write(format_args!("delete '{key}'")))
    }

    /// The clusters of the bucket that have a root.
    pub(super) async fn clusters(&self) -> Result<BTreeSet<String>, StoreError> {
        #[derive(Deserialize)]
        struct Answer {
            state: State,
        }
        #[derive(Deserialize)]
        struct State {
            #[serde(default)]
            subjects: BTreeMap<String, IgnoredAny>,
        }
        let space = self.bucket.space_of_all();
        let asked = json!({ "subjects_filter": format!("{space}*.root") });
        let subject = format!("$JS.API.STREAM.INFO.{}", self.bucket.stream);
        let answer: Result<Answer, Fault> =
            api::call(&self.link, self.deadline(), &subject, &asked).await;
        let answer = answer.map_err(|fault| fault.of_read("list clusters"))?;
        let subjects = answer.state.subjects.into_keys();
        let cluster = |subject: String| {
            let cluster = subject.strip_prefix(&space)?.strip_suffix(".root")?;
            decode_part(cluster)
        };
        Ok(subjects.filter_map(cluster).collect())
    }

    /// Removes all messages of the cluster's keys, deletion markers included.
    pub(super) async fn erase(&self) -> Result<(), StoreError> {
        let deadline = self.deadline();
        self.ready(deadline).await?;
        let all = json!({ "filter": self.bucket.subjects(&Prefix::ALL) });
        let subject = format!("$JS.API.STREAM.PURGE.{}", self.bucket.stream);
        let done: Result<IgnoredAny, Fault> = api::call(&self.link, deadline, &subject, &all).await;
        done.map(drop)
            .map_err(|fault| fault.of_write("erase the cluster"))
    }

    pub(super) async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        if let Some(key) = prefix.single() {
            return Ok(self.get(key).await?.into_iter().collect());
        }
        let deadline = self.deadline();
        self.ready(deadline).await?;
        let mut found = BTreeMap::new();
        let keep = |delivered: Delivered| -> Result<(), Unlisted> {
            self.keep(delivered, &mut found)?;
            Ok(())
        };
        let listing = timeout_at(deadline, self.drain(deadline, prefix, keep)).await;
        let listing = listing.unwrap_or_else(|_elapsed| Err(Fault::TimedOut.into()));
        listing.map_err(|unlisted| match unlisted {
            Unlisted::Refused(error) => error,
            Unlisted::Fault(fault) => self.seen(fault).of_read("list"),
        })?;
        Ok(found.into_values().collect())
    }

    /// A consumer of what is below `prefix`, from now on.
    pub(super) async fn follow(&self, prefix: &Prefix) -> Result<Consumer, StoreError> {
        let deadline = self.deadline();
        self.ready(deadline).await?;
        // With copies, a listing may be read from one that is behind the one
        // that the consumer is on. Then what lies between must come here.
        let begin = if self.bucket.replicas() > 1 {
            Begin::Present
        } else {
            Begin::New
        };
        let filter = self.bucket.subjects(prefix);
        let made = Consumer::make(&self.link, &self.bucket, deadline, &filter, begin).await;
        made.map_err(|fault| self.seen(fault).of_read("watch"))
    }

    async fn drain(
        &self,
        deadline: Instant,
        prefix: &Prefix,
        keep: impl FnMut(Delivered) -> Result<(), Unlisted>,
    ) -> Result<(), Unlisted> {
        let (link, bucket) = (&self.link, &self.bucket);
        let filter = bucket.subjects(prefix);
        let mut consumer = Consumer::make(link, bucket, deadline, &filter, Begin::Present).await?;
        let drained = consumer.drain(link, bucket, deadline, keep).await;
        // At the deadline the server is left to forget it by itself.
        let _elapsed = timeout_at(deadline, consumer.forget(link, bucket)).await;
        drained
    }

    /// Adds a delivered message to a listing. What came later is newer.
    fn keep(
        &self,
        delivered: Delivered,
        found: &mut BTreeMap<Key, Entry>,
    ) -> Result<(), StoreError> {
        let Some(key) = self.bucket.key(&delivered.message.subject) else {
            return Ok(());
        };
        if delivered.is_marker() {
            self.sweep(delivered.message.subject.to_string(), delivered.sequence);
            found.remove(&key);
            return Ok(());
        }
        let Some(revision) = value_revision(delivered.sequence) else {
            return Ok(());
        };
        let value = delivered.message.payload.as_ref().into();
        let entry = Entry {
            key: key.clone(),
            value,
            revision,
        };
        found.insert(key, entry);
        check_listed(found.len())?;
        Ok(())
    }

    /// Writes the first value of a key that has none: no message at all, or a
    /// deletion marker.
    async fn create(&self, limits: WriteLimits, subject: &str, value: &[u8]) -> Result<u64, Fault> {
        let mut sequence = 0;
        let mut tries = 0;
        loop {
            let written = Written::Value(value);
            let conflict = match self.write(limits, subject, sequence, written).await {
                Err(fault) if fault.is_conflict() => fault,
                other => return other,
            };
            tries += 1;
            let last = self.last(limits.deadline, subject).await;
            let last = last.map_err(|fault| Fault::BeforeWriting(Box::new(fault)))?;
            sequence = match last {
                Some(stored) if !stored.is_marker => return Err(conflict),
                _ if tries == CREATION_TRIES_MAX => return Err(conflict),
                Some(marker) => marker.sequence,
                // The marker has been removed meanwhile.
                None => 0,
            };
        }
    }

    /// Writes under a condition. Copies make a server refuse also while it is
    /// not done with the write before, which it may have acknowledged already:
    /// then it is asked again, and nothing has been written meanwhile.
    async fn write(
        &self,
        limits: WriteLimits,
        subject: &str,
        sequence: u64,
        written: Written<'_>,
    ) -> Result<u64, Fault> {
        let mut tries = 0;
        loop {
            if self.link.connects() != limits.connects {
                return Err(Fault::NotSent("the connection was lost".to_owned()));
            }
            let publishing =
                api::publish_if(&self.link, limits.deadline, subject, sequence, written);
            let conflict = match publishing.await {
                Err(fault) if fault.is_conflict() && self.bucket.replicas() > 1 => fault,
                Err(fault) => return Err(self.seen(fault)),
                Ok(sequence) => return Ok(sequence),
            };
            tries += 1;
            let last = self.last(limits.deadline, subject).await;
            let last = last.map_err(|fault| Fault::BeforeWriting(Box::new(fault)))?;
            let is_as_expected = last.map_or(0, |last| last.sequence) == sequence;
            if !is_as_expected || tries == UNSETTLED_TRIES_MAX {
                return Err(conflict);
            }
            sleep(UNSETTLED_DELAY * tries).await;
        }
    }

    async fn last(&self, deadline: Instant, subject: &str) -> Result<Option<Stored>, Fault> {
        let reading = api::last_message(&self.link, deadline, &self.bucket.stream, subject);
        reading.await.map_err(|fault| self.seen(fault))
    }

    fn sweep(&self, subject: String, sequence: u64) {
        // With too many waiting, it is left to whoever lists next.
        let _full = self.markers.try_send(Marker { subject, sequence });
    }
}

/// What bounds a write. The store behind another connection may be in another
/// life, in which the sequence that the write replaces is another message's.
#[derive(Debug, Clone, Copy)]
struct WriteLimits {
    connects: u64,
    deadline: Instant,
}

/// Why there is no listing.
enum Unlisted {
    Fault(Fault),
    Refused(StoreError),
}

impl From<Fault> for Unlisted {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<StoreError> for Unlisted {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// A lost condition is a value; a revision comes of the new sequence.
fn outcome(
    written: Result<u64, Fault>,
    revision: impl Fn(u64) -> Option<Revision>,
) -> Result<Outcome<Revision>, Fault> {
    match written {
        Ok(sequence) => {
            let revision = revision(sequence);
            let garbled = Fault::Garbled("a sequence beyond all bounds");
            revision.map(Outcome::Done).ok_or(garbled)
        }
        Err(fault) if fault.is_conflict() => Ok(Outcome::Conflict),
        Err(fault) => Err(fault),
    }
}
