//! The bucket: made if it is missing, checked, and never edited.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use divvy_core::store::{Key, Prefix, StoreError, StoreErrorKind, encode_part};
use serde_json::json;
use tokio::time::Instant;

use super::api::{self, StreamConfig, StreamInfo, Written};
use super::fault::{Fault, code};
use super::link::Link;
use super::misfits::Misfits;
use super::version;
use crate::store::clock;
use crate::store::settings::StoreSettings;

/// How often somebody else may be found to have made or deleted the bucket
/// before it is left to a later try.
const ROUNDS_MAX: usize = 4;
/// How long one question is waited for. In a cluster nobody answers while the
/// copies of a bucket have no leader yet, which is so when several members
/// make it at once: asking again is answered, waiting is not.
const TRY: Duration = Duration::from_secs(2);
/// Watches and listings of all members together. Servers of 2.15 take 1000
/// where none is given, which a few hundred members have.
const CONSUMERS_MAX: u32 = 100_000;
/// A sequence that no message has had.
const NEVER: u64 = (1 << 53) - 1;
/// The highest sequence that a bucket begins with, whatever the clock says.
const FIRST_MAX: u64 = 1 << 52;

/// A bucket's names, and how many copies it has.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) name: String,
    pub(super) stream: String,
    /// What the subject of each of this cluster's keys begins with.
    space: String,
    /// Those who only look take it as it is.
    replicas: AtomicU8,
    /// Made if it is missing.
    create: bool,
}

impl Bucket {
    pub(super) fn new(settings: &StoreSettings) -> Self {
        let name = &settings.bucket;
        Self {
            name: name.clone(),
            stream: format!("KV_{name}"),
            space: format!("$KV.{name}.{}.", encode_part(&settings.cluster)),
            replicas: AtomicU8::new(settings.replicas),
            create: settings.create,
        }
    }

    /// How many copies it has.
    pub(super) fn replicas(&self) -> u8 {
        self.replicas.load(Ordering::Relaxed)
    }

    /// What the subjects of all clusters begin with.
    pub(super) fn space_of_all(&self) -> String {
        format!("$KV.{}.", self.name)
    }

    /// The subject of a key.
    pub(super) fn subject(&self, key: &Key) -> String {
        format!("{}{key}", self.space)
    }

    /// The subjects of the keys below a prefix, or of its one key.
    pub(super) fn subjects(&self, prefix: &Prefix) -> String {
        let rest = if prefix.single().is_some() { "" } else { ">" };
        format!("{}{}{rest}", self.space, prefix.text())
    }

    /// The key of a subject; nothing if it is not one of ours.
    pub(super) fn key(&self, subject: &str) -> Option<Key> {
        Key::parse(subject.strip_prefix(&self.space)?).ok()
    }

    /// Makes sure that the bucket is there and fit, and that the server is.
    pub(super) async fn ensure(
        &self,
        link: &Link,
        deadline: Instant,
    ) -> Result<StreamInfo, StoreError> {
        let info = self.find_or_make(link, deadline).await?;
        if !self.create
            && let Ok(found) = u8::try_from(info.config.num_replicas)
        {
            self.replicas.store(found, Ordering::Relaxed);
        }
        // After an answer, so that it is surely this connection's server.
        version::check(&link.server().version, self.replicas())?;
        self.check(&info.config)?;
        self.probe(link, deadline).await?;
        Ok(info)
    }

    /// The bucket as it is now.
    pub(super) async fn info(&self, link: &Link, deadline: Instant) -> Result<StreamInfo, Fault> {
        let subject = format!("$JS.API.STREAM.INFO.{}", self.stream);
        api::call(link, deadline, &subject, &json!({})).await
    }

    async fn find_or_make(&self, link: &Link, deadline: Instant) -> Result<StreamInfo, StoreError> {
        let looking = format!("bucket '{}'", self.name);
        let mut rounds = 0;
        while rounds < ROUNDS_MAX {
            let soon = deadline.min(Instant::now() + TRY);
            match self.info(link, soon).await {
                Ok(info) => return Ok(info),
                Err(fault) if fault.is_api(code::NO_STREAM) => {}
                Err(Fault::TimedOut) if soon < deadline => continue,
                Err(Fault::NoResponders) if !link.server().jetstream => {
                    return Err(StoreError::unfit(format_args!(
                        "{looking}: JetStream is not enabled on the server"
                    )));
                }
                Err(fault) => return Err(fault.of_read(looking)),
            }
            if !self.create {
                return Err(StoreError::unfit(format_args!(
                    "{looking} is not there: nobody has made it"
                )));
            }
            // An old server might misunderstand what it is asked to make.
            version::check(&link.server().version, self.replicas())?;
            let soon = deadline.min(Instant::now() + TRY);
            match self.make(link, soon).await {
                Ok(info) => {
                    tracing::info!(bucket = self.name, "made the bucket");
                    return Ok(info);
                }
                // Somebody else was faster.
                Err(fault) if fault.is_api(code::NAME_IN_USE) => rounds += 1,
                Err(Fault::TimedOut) if soon < deadline => {}
                Err(fault) => return Err(fault.of_read(format_args!("cannot make {looking}"))),
            }
        }
        Err(StoreError::unavailable(format_args!(
            "{looking}: others make and delete it at the same time"
        )))
    }

    async fn make(&self, link: &Link, deadline: Instant) -> Result<StreamInfo, Fault> {
        let config = json!({
            "name": self.stream,
            "subjects": [format!("{}>", self.space_of_all())],
            "retention": "limits",
            "storage": "file",
            "discard": "new",
            "num_replicas": self.replicas(),
            "max_msgs_per_subject": 1,
            "max_age": 0,
            "max_consumers": CONSUMERS_MAX,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_msg_size": -1,
            "deny_delete": true,
            "allow_rollup_hdrs": true,
            // Direct reads are served by replicas, which may lag.
            "allow_direct": false,
            // Microseconds: a bucket that is deleted and made again goes on
            // above all revisions that it had, unless it took over a million
            // writes each second of its life.
            "first_seq": clock::unix_ms().saturating_mul(1000).min(FIRST_MAX),
        });
        let subject = format!("$JS.API.STREAM.CREATE.{}", self.stream);
        api::call(link, deadline, &subject, &config).await
    }

    /// Refuses a bucket that would lose what was written, or not keep what is
    /// expected of it.
    pub(super) fn check(&self, found: &StreamConfig) -> Result<(), StoreError> {
        let misfits = Misfits::of(
            found,
            &[format!("{}>", self.space_of_all())],
            self.replicas(),
        );
        if misfits.is_none() {
            return Ok(());
        }
        Err(StoreError::unfit(format_args!(
            "bucket '{}' is not as it must be, and is not edited: {misfits}",
            self.name
        )))
    }

    /// Makes sure that conditions are kept: a write that must be refused is.
    async fn probe(&self, link: &Link, deadline: Instant) -> Result<(), StoreError> {
        // Not the subject of any key: no encoder writes this.
        let subject = format!("{}=probe", self.space);
        let answer = loop {
            let soon = deadline.min(Instant::now() + TRY);
            let value = Written::Value(b"probe");
            match api::publish_if(link, soon, &subject, NEVER, value).await {
                Err(Fault::TimedOut) if soon < deadline => {}
                answer => break answer,
            }
        };
        match answer {
            Err(fault) if fault.is_conflict() => Ok(()),
            Ok(_) => Err(StoreError::unfit(
                "the server accepts a conditional write whose condition does not hold",
            )),
            Err(fault) => {
                let error = fault.of_read(format_args!("probing bucket '{}'", self.name));
                // Nothing was there to be done: no doubt remains.
                debug_assert_ne!(error.kind(), StoreErrorKind::Unknown);
                Err(error)
            }
        }
    }
}
