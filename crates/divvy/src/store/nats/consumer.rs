//! Reading many messages: what is below a prefix now, and what comes.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::{HeaderMap, Message, Subscriber};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::api;
use super::bucket::Bucket;
use super::fault::Fault;
use super::link::Link;
use super::position::Position;
use super::replies::Pending;

/// Messages of one pull.
const BATCH: u64 = 4096;
/// Bytes of one pull, so that a listing of large values does not fill memory,
/// and a watch that is not read does not make the server cut the connection.
const BATCH_BYTES: usize = 16 << 20;
/// How long the server waits for what it has miscounted, and how long without
/// any message means that there is none. The least that it takes.
const DOUBT_LASTS: Duration = Duration::from_millis(500);
const DOUBT_HEARTBEAT: Duration = Duration::from_millis(100);
/// How long the server keeps a pull that waits.
const PULL_LASTS: Duration = Duration::from_secs(30);
/// How long the server remembers a consumer that nobody pulls from.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// How often a pull may find that nobody serves the consumer: in a cluster, it
/// takes a moment until every server knows of a new one.
const UNSERVED_MAX: u32 = 20;
const UNSERVED_DELAY: Duration = Duration::from_millis(5);

/// The status of a control message.
mod status {
    pub(super) const HEARTBEAT: u16 = 100;
    pub(super) const NO_MESSAGES: u16 = 404;
    pub(super) const EXPIRED: u16 = 408;
    pub(super) const CONFLICT: u16 = 409;
    pub(super) const NO_RESPONDERS: u16 = 503;
}

/// Where a consumer begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Begin {
    /// With the last message of each subject.
    Present,
    /// With what comes.
    New,
}

/// A message of a stream, as a consumer gets it.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) message: Message,
    pub(super) sequence: u64,
    /// How many follow at once.
    pending: u64,
}

impl Delivered {
    pub(super) fn is_marker(&self) -> bool {
        api::is_marker(self.message.headers.as_ref())
    }
}

/// A consumer that the server forgets when it is not used.
#[derive(Debug)]
pub(super) struct Consumer {
    name: String,
    inbox: String,
    subscriber: Subscriber,
    /// Messages there were when it was made.
    present: u64,
    /// The number of the last message that came, from 1.
    last: u64,
    /// Of a pull, how many messages may still come.
    outstanding: u64,
    /// How many pulls there have been.
    pulls: u64,
    /// How often in a row nobody served it.
    unserved: u32,
}

/// What a pull brought.
enum Pulled {
    Message(Delivered),
    /// The server is there, and has nothing to give.
    Idle,
    /// The server does not know the consumer yet.
    Unserved,
    /// There are no more messages now.
    Empty,
    /// The pull has ended, and there may be more.
    Over,
}

impl Consumer {
    /// Makes one for the subjects that `filter` matches.
    pub(super) async fn make(
        link: &Link,
        bucket: &Bucket,
        deadline: Instant,
        filter: &str,
        begin: Begin,
    ) -> Result<Self, Fault> {
        #[derive(Deserialize)]
        struct Made {
            #[serde(default)]
            num_pending: u64,
        }
        let listening = timeout_at(deadline, link.listen());
        let (inbox, subscriber) = listening.await.unwrap_or(Err(Fault::TimedOut))?;
        let stream = &bucket.stream;
        let name = format!("divvy-{:032x}", fastrand::u128(..));
        let config = json!({
            "stream_name": stream,
            "action": "create",
            "config": {
                "name": name,
                "deliver_policy": match begin {
                    Begin::Present => "last_per_subject",
                    Begin::New => "new",
                },
                "ack_policy": "none",
                "filter_subject": filter,
                "mem_storage": true,
                "num_replicas": 1,
                "inactive_threshold": nanos(KEPT_FOR),
            },
        });
        // With the filter in the subject, permissions can be about it.
        let subject = format!("$JS.API.CONSUMER.CREATE.{stream}.{name}.{filter}");
        let made: Made = api::call(link, deadline, &subject, &config).await?;
        Ok(Self {
            name,
            inbox,
            subscriber,
            present: made.num_pending,
            last: 0,
            outstanding: 0,
            pulls: 0,
            unserved: 0,
        })
    }

    /// All messages that are there now, given to `each` until that fails.
    ///
    /// Each subject that was there comes at least once, unless it is purged
    /// meanwhile. A server that says sooner that there is no more has
    /// miscounted, which happens while keys change, and is asked to wait: what
    /// is still there comes at once then.
    pub(super) async fn drain<E: From<Fault>>(
        &mut self,
        link: &Link,
        bucket: &Bucket,
        deadline: Instant,
        mut each: impl FnMut(Delivered) -> Result<(), E>,
    ) -> Result<(), E> {
        let at_once = json!({ "batch": BATCH, "max_bytes": BATCH_BYTES, "no_wait": true });
        let after_all = json!({
            "batch": BATCH,
            "max_bytes": BATCH_BYTES,
            "expires": nanos(DOUBT_LASTS),
            "idle_heartbeat": nanos(DOUBT_HEARTBEAT),
        });
        let subject = self.pull_subject(bucket);
        let mut refusal = link.events().replies.expect(&subject)?;
        let mut seen = BTreeSet::new();
        let mut pull = &at_once;
        let mut last_of_pull = None;
        if self.present == 0 {
            return Ok(());
        }
        loop {
            if self.outstanding == 0 {
                self.pull(link, &subject, pull).await?;
                last_of_pull = Some(self.last);
            }
            let next = timeout_at(deadline, self.next_unless(&mut refusal));
            let is_end = match next.await.unwrap_or(Err(Fault::TimedOut))? {
                Pulled::Message(delivered) => {
                    seen.insert(delivered.message.subject.clone());
                    let is_end = delivered.pending == 0;
                    each(delivered)?;
                    is_end
                }
                Pulled::Over if last_of_pull == Some(self.last) => {
                    return Err(Fault::Garbled("a pull that ends without a message").into());
                }
                Pulled::Over | Pulled::Unserved => false,
                Pulled::Empty | Pulled::Idle if pull == &after_all => return Ok(()),
                Pulled::Empty | Pulled::Idle => true,
            };
            if is_end && seen.len() as u64 >= self.present {
                return Ok(());
            }
            if is_end && pull == &at_once {
                self.outstanding = 0;
                pull = &after_all;
            }
        }
    }

    /// Waits for the next message. A consumer that says nothing for a few
    /// heartbeats is gone.
    pub(super) async fn follow(
        &mut self,
        link: &Link,
        bucket: &Bucket,
        heartbeat: Duration,
    ) -> Result<Delivered, Fault> {
        let subject = self.pull_subject(bucket);
        let mut refusal = link.events().replies.expect(&subject)?;
        loop {
            if self.outstanding == 0 {
                let pull = json!({
                    "batch": BATCH,
                    "max_bytes": BATCH_BYTES,
                    "expires": nanos(PULL_LASTS),
                    "idle_heartbeat": nanos(heartbeat),
                });
                self.pull(link, &subject, &pull).await?;
            }
            let silence = heartbeat * 5 / 2;
            let next = timeout(silence, self.next_unless(&mut refusal)).await;
            match next.unwrap_or(Err(Fault::TimedOut))? {
                Pulled::Message(delivered) => return Ok(delivered),
                Pulled::Idle | Pulled::Unserved | Pulled::Empty | Pulled::Over => {}
            }
        }
    }

    /// Has the server forget it now.
    pub(super) async fn forget(self, link: &Link, bucket: &Bucket) {
        let (stream, name) = (&bucket.stream, &self.name);
        link.tell(&format!("$JS.API.CONSUMER.DELETE.{stream}.{name}"))
            .await;
    }

    fn pull_subject(&self, bucket: &Bucket) -> String {
        let (stream, name) = (&bucket.stream, &self.name);
        format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}")
    }

    /// What a pull's own answers are sent to: an old one's say nothing of it.
    fn reply(&self) -> String {
        format!("{}.{}", self.inbox, self.pulls)
    }

    async fn pull(
        &mut self,
        link: &Link,
        subject: &str,
        pull: &serde_json::Value,
    ) -> Result<(), Fault> {
        link.check_up()?;
        self.pulls += 1;
        let (reply, body) = (self.reply(), pull.to_string().into_bytes());
        link.send(subject, reply, HeaderMap::new(), body).await?;
        self.outstanding = BATCH;
        Ok(())
    }

    /// What comes next, unless the pull is forbidden or the connection is lost:
    /// then nothing will come.
    async fn next_unless(&mut self, refusal: &mut Pending<'_>) -> Result<Pulled, Fault> {
        tokio::select! {
            next = self.next() => next,
            refused = refusal.answer() => Err(refused.err().unwrap_or(Fault::Cut)),
        }
    }

    async fn next(&mut self) -> Result<Pulled, Fault> {
        let (message, status) = loop {
            let message = self.subscriber.next().await.ok_or(Fault::Cut)?;
            match message.status {
                None => return self.delivered(message).map(Pulled::Message),
                Some(status) if *message.subject == *self.reply() => break (message, status),
                Some(_) => {}
            }
        };
        if status.as_u16() != status::HEARTBEAT {
            self.outstanding = 0;
        }
        if status.as_u16() != status::NO_RESPONDERS {
            self.unserved = 0;
        }
        let words = message.description.as_deref().unwrap_or_default();
        match status.as_u16() {
            status::HEARTBEAT => Ok(Pulled::Idle),
            status::NO_MESSAGES | status::EXPIRED => Ok(Pulled::Empty),
            status::CONFLICT if is_over(words) => Ok(Pulled::Over),
            status::NO_RESPONDERS => self.unserved().await,
            _ => Err(Fault::Garbled("a consumer that was deleted or moved")),
        }
    }

    /// Waits a little, so that the next pull is served.
    async fn unserved(&mut self) -> Result<Pulled, Fault> {
        self.unserved += 1;
        if self.unserved > UNSERVED_MAX {
            return Err(Fault::NoResponders);
        }
        sleep(UNSERVED_DELAY * self.unserved).await;
        Ok(Pulled::Unserved)
    }

    /// A message with where it stood, if none before it was lost.
    fn delivered(&mut self, message: Message) -> Result<Delivered, Fault> {
        let position = message.reply.as_deref().and_then(Position::parse);
        let position = position.ok_or(Fault::Garbled("a message without its position"))?;
        if position.number != self.last + 1 {
            return Err(Fault::Garbled("a gap among the messages"));
        }
        self.last = position.number;
        self.unserved = 0;
        self.outstanding = self.outstanding.saturating_sub(1);
        Ok(Delivered {
            message,
            sequence: position.sequence,
            pending: position.pending,
        })
    }
}

/// Whether a conflict only ends the pull, not the consumer.
fn is_over(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    words.contains("maxbytes") || words.contains("batch completed")
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
