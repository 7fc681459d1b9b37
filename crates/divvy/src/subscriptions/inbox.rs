//! Getting messages of one consumer, as long as it is there.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::consumer::{Wanted, nanos};
use super::health::Gauges;
use super::jetstream::JetStream;
use super::message::Message;
use super::pulls::Pulls;
use crate::store::Connection;
use crate::store::nats::fault::Fault;

/// How long the server keeps a request that waits.
const PULL_LASTS: Duration = Duration::from_secs(30);

/// A server that has said nothing for so many heartbeats is not there.
const SILENT_BEATS: u32 = 3;

/// The status of a control message.
mod status {
    pub(super) const HEARTBEAT: u16 = 100;
    pub(super) const BAD_REQUEST: u16 = 400;
    pub(super) const CONFLICT: u16 = 409;
    pub(super) const NO_RESPONDERS: u16 = 503;
}

/// Why no more messages come.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The consumer, or its stream, is not there any more.
    Gone(String),
    /// The consumer does not take requests as they are made here.
    Refused(String),
    /// The consumer gave out a message that is not of this partition.
    Foreign(Box<Message>),
    /// The server does not say that it is there.
    Silent,
    Fault(Fault),
}

/// Where the messages of a consumer come in.
pub(super) struct Inbox {
    jetstream: Arc<JetStream>,
    /// Where requests go.
    requests: String,
    /// The partition's subject: no message has another.
    filter: String,
    /// What the subjects of answers begin with.
    subject: String,
    subscriber: Subscriber,
    connection: watch::Receiver<Connection>,
    pulls: Pulls,
    batch: u32,
    heartbeat: Duration,
    heard: Instant,
    /// Looks so often whether anything was heard.
    silence: Pin<Box<Sleep>>,
    gauges: Arc<Gauges>,
}

impl Inbox {
    pub(super) async fn open(
        jetstream: Arc<JetStream>,
        wanted: &Wanted,
        batch: u32,
        heartbeat: Duration,
        gauges: Arc<Gauges>,
    ) -> Result<Self, Fault> {
        let listening = timeout_at(jetstream.deadline(), jetstream.link.listen());
        let (subject, subscriber) = listening.await.unwrap_or(Err(Fault::TimedOut))?;
        let mut connection = jetstream.link.events().report.subscribe();
        connection.mark_unchanged();
        Ok(Self {
            requests: format!(
                "$JS.API.CONSUMER.MSG.NEXT.{}.{}",
                jetstream.stream, wanted.name
            ),
            filter: wanted.filter.clone(),
            jetstream,
            subject,
            subscriber,
            connection,
            pulls: Pulls::default(),
            batch,
            heartbeat,
            heard: Instant::now(),
            silence: Box::pin(sleep_until(Instant::now() + heartbeat * SILENT_BEATS)),
            gauges,
        })
    }

    /// The next message. Dropped while it waits, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Message, Trouble> {
        loop {
            self.order().await.map_err(Trouble::Fault)?;
            let message = tokio::select! {
                biased;
                message = self.subscriber.next() => message.ok_or(Trouble::Fault(Fault::Cut))?,
                changed = self.connection.changed() => {
                    if changed.is_err() {
                        return Err(Trouble::Fault(Fault::Cut));
                    }
                    // A server forgets the requests of a lost connection.
                    self.pulls.forgotten();
                    self.heard = Instant::now();
                    self.connected().await;
                    continue;
                }
                () = &mut self.silence => {
                    let silent = self.heard + self.heartbeat * SILENT_BEATS;
                    if silent <= Instant::now() {
                        return Err(Trouble::Silent);
                    }
                    self.silence.as_mut().reset(silent);
                    continue;
                }
            };
            self.heard = Instant::now();
            if let Some(message) = self.sort(message)? {
                return Ok(message);
            }
        }
    }

    /// Nobody looked for a while, so silence begins now.
    pub(super) fn rested(&mut self) {
        self.heard = Instant::now();
    }

    /// Asks for messages, unless there are enough on order.
    async fn order(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        let Some(number) = self.pulls.wanted(self.batch, now) else {
            return Ok(());
        };
        if self.jetstream.link.check_up().is_err() {
            self.connected().await;
        }
        let request = json!({
            "batch": self.batch,
            "expires": nanos(PULL_LASTS),
            "idle_heartbeat": nanos(self.heartbeat),
        });
        let reply = format!("{}.{number}", self.subject);
        let body = request.to_string().into_bytes();
        let link = &self.jetstream.link;
        link.send(&self.requests, reply, HeaderMap::new(), body)
            .await?;
        self.pulls.sent(self.batch, now, PULL_LASTS);
        Ok(())
    }

    /// Waits until there is a connection.
    async fn connected(&mut self) {
        let lost_by = {
            let connection = self.connection.borrow();
            let lost_by = connection.lost_by.clone().filter(|_| !connection.up);
            lost_by.unwrap_or_default()
        };
        if !lost_by.is_empty() {
            self.gauges.is_consuming.store(false, Ordering::Relaxed);
            self.gauges.wrong(lost_by);
        }
        // Without a report any more, requests fail by themselves.
        let _closed = self
            .connection
            .wait_for(|connection| connection.up)
            .await
            .is_err();
        self.gauges.is_consuming.store(true, Ordering::Relaxed);
        self.heard = Instant::now();
    }

    /// Tells messages from what a server says of requests.
    fn sort(&mut self, message: async_nats::Message) -> Result<Option<Message>, Trouble> {
        let Some(status) = message.status else {
            self.pulls.delivered();
            // One without a position is no message of a stream.
            return match Message::new(message) {
                Some(message) if message.subject() != self.filter => {
                    Err(Trouble::Foreign(Box::new(message)))
                }
                message => Ok(message),
            };
        };
        let number = message.subject.rsplit('.').next();
        let number = number.and_then(|number| number.parse().ok());
        let words = message.description.as_deref().unwrap_or_default();
        let status = status.as_u16();
        if status == status::HEARTBEAT {
            return Ok(None);
        }
        self.pulls.ended(number.unwrap_or(0));
        let gone = || Err(Trouble::Gone(words.to_owned()));
        match status {
            status::NO_RESPONDERS => Err(Trouble::Gone("nobody serves the consumer".to_owned())),
            status::CONFLICT if is_gone(words) => gone(),
            // At once, it would be refused again.
            status::BAD_REQUEST => Err(Trouble::Refused(words.to_owned())),
            status::CONFLICT if is_refused(words) => Err(Trouble::Refused(words.to_owned())),
            // An end of the request alone: expired, or its server stops.
            _ => Ok(None),
        }
    }

    /// Takes no more orders, and gives what has come until then. Waits at most
    /// until `deadline`.
    pub(super) async fn close(mut self, deadline: Instant) -> Vec<Message> {
        let mut left = Vec::new();
        // Without a connection nothing comes any more, and nothing can be said.
        if self.jetstream.link.check_up().is_err() || self.subscriber.drain().await.is_err() {
            return left;
        }
        while let Ok(Some(message)) = timeout_at(deadline, self.subscriber.next()).await {
            if message.status.is_none() && message.subject.as_str() == self.filter {
                left.extend(Message::new(message));
            }
        }
        left
    }
}

/// Whether a conflict ends more than a request.
fn is_gone(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    words.contains("consumer deleted") || words.contains("push based")
}

/// Whether a conflict is about what was asked for.
fn is_refused(words: &str) -> bool {
    words.to_ascii_lowercase().starts_with("exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_conflicts_mean_that_the_consumer_is_gone() {
        assert!(is_gone("Consumer Deleted") && is_gone("Consumer is push based"));
        for words in [
            "Leadership Change",
            "Server Shutdown",
            "Exceeded MaxWaiting",
            "",
        ] {
            assert!(!is_gone(words), "{words}");
            assert_eq!(is_refused(words), words.starts_with("Exceeded"));
        }
    }
}
