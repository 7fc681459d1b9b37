//! Requests to the server about streams and consumers.

use std::time::Duration;

use async_nats::{Client, HeaderMap, Subject};
use divvy_core::store::StoreError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::consumer::{Begin, Found, Wanted};
use super::message::Message;
use super::settings::{Retention, SubscriptionSettings};
use crate::store::nats::api;
use crate::store::nats::fault::{Fault, code};
use crate::store::nats::link::Link;

/// Requests about consumers that are under way at once, so that many new
/// partitions do not flood the server.
const ASKING_MAX: usize = 32;

/// Consumers that a stream takes which is made here. Without a word, servers of
/// 2.15 take 1000.
const CONSUMERS_MAX: u32 = 100_000;

/// Subjects of a stream that an error names.
const SUBJECTS_TOLD: usize = 5;

/// What belongs to whoever made a consumer, or cannot be changed.
const KEPT: [&str; 8] = [
    "deliver_policy",
    "opt_start_seq",
    "opt_start_time",
    "replay_policy",
    "max_waiting",
    "num_replicas",
    "mem_storage",
    "pause_until",
];

/// The server, as far as streams and consumers go.
pub(super) struct JetStream {
    pub(super) link: Link,
    /// For what nobody answers.
    client: Client,
    pub(super) stream: String,
    pub(super) operation_timeout: Duration,
    asking: Semaphore,
}

/// A stream as the server describes it.
#[derive(Debug, Deserialize)]
pub(super) struct StreamInfo {
    /// When it was made: another one is another stream.
    pub(super) created: String,
    pub(super) config: StreamConfig,
}

#[derive(Debug, Deserialize)]
pub(super) struct StreamConfig {
    pub(super) retention: Retention,
    #[serde(default)]
    subjects: Vec<String>,
    /// With these, messages come under other subjects than the stream's.
    mirror: Option<IgnoredAny>,
    sources: Option<IgnoredAny>,
    subject_transform: Option<IgnoredAny>,
}

impl StreamConfig {
    /// Whether messages of this subject may be there.
    fn takes(&self, subject: &str) -> bool {
        let is_fed_otherwise =
            self.mirror.is_some() || self.sources.is_some() || self.subject_transform.is_some();
        is_fed_otherwise || self.subjects.iter().any(|own| matches(own, subject))
    }
}

/// Whether a subject is one of those that a pattern is for.
fn matches(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for part in pattern.split('.') {
        match (part, tokens.next()) {
            (_, None) => return false,
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (part, Some(token)) if part == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

impl JetStream {
    pub(super) fn new(link: Link, stream: &str, operation_timeout: Duration) -> Self {
        Self {
            client: link.client(),
            link,
            stream: stream.to_owned(),
            operation_timeout,
            asking: Semaphore::new(ASKING_MAX),
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.operation_timeout
    }

    /// The stream, made if it is missing and settings say of what kind it is.
    pub(super) async fn stream(
        &self,
        settings: &SubscriptionSettings,
        replicas: u8,
    ) -> Result<StreamInfo, StoreError> {
        let what = || format!("stream '{}'", self.stream);
        let info = match self.stream_info(&self.stream).await {
            Err(fault) if fault.is_api(code::NO_STREAM) => {
                let (retention, subjects) = match (settings.retention, settings.stream_subjects()) {
                    (Some(retention), Some(subjects)) => (retention, subjects),
                    (None, _) => {
                        let rule = "is missing: make it, or set retention to have it made";
                        return Err(StoreError::unfit(format_args!("{}: {rule}", what())));
                    }
                    (Some(_), None) => {
                        let rule = "is missing, and cannot be made, because the template does not \
                                    begin with {prefix}: make it with the subjects that it gives";
                        return Err(StoreError::unfit(format_args!("{}: {rule}", what())));
                    }
                };
                let made = self
                    .make_stream(&self.stream, retention, subjects, replicas)
                    .await;
                made.map_err(|fault| fault.of_read(format_args!("cannot make {}", what())))?
            }
            found => found.map_err(|fault| fault.of_read(what()))?,
        };
        let found = info.config.retention;
        match settings.retention.filter(|wanted| *wanted != found) {
            Some(wanted) => Err(StoreError::unfit(format_args!(
                "{}: its retention is '{}', and '{}' is wanted",
                what(),
                found.name(),
                wanted.name()
            ))),
            None => Ok(info),
        }
    }

    /// Refuses a stream to which nothing of this subject can come: it would be
    /// waited for in silence.
    pub(super) fn check_subject(&self, info: &StreamInfo, subject: &str) -> Result<(), StoreError> {
        if info.config.takes(subject) {
            return Ok(());
        }
        let subjects = &info.config.subjects;
        let more = if subjects.len() > SUBJECTS_TOLD {
            ", ..."
        } else {
            ""
        };
        let told: Vec<_> = subjects.iter().take(SUBJECTS_TOLD).cloned().collect();
        Err(StoreError::unfit(format_args!(
            "stream '{}' takes no messages of '{subject}', only of {}{more}: correct its subjects, \
             or the prefix and template",
            self.stream,
            told.join(", ")
        )))
    }

    /// The stream of dead letters, made if it is missing.
    pub(super) async fn dead_letters(
        &self,
        settings: &SubscriptionSettings,
        replicas: u8,
    ) -> Result<(), StoreError> {
        let letters = &settings.dead_letters;
        match self.stream_info(&letters.stream).await {
            Err(fault) if fault.is_api(code::NO_STREAM) => {}
            found => {
                let what = format_args!("stream '{}' of dead letters", letters.stream).to_string();
                return found.map(|_info| ()).map_err(|fault| fault.of_read(what));
            }
        }
        let subjects = format!("{}.{}.>", letters.prefix, self.stream);
        let name = &letters.stream;
        let made = self
            .make_stream(name, Retention::Limits, subjects, replicas)
            .await;
        made.map(|_info| ()).map_err(|fault| {
            fault.of_read(format_args!("cannot make stream '{name}' of dead letters"))
        })
    }

    async fn stream_info(&self, name: &str) -> Result<StreamInfo, Fault> {
        let subject = format!("$JS.API.STREAM.INFO.{name}");
        api::call(&self.link, self.deadline(), &subject, &json!({})).await
    }

    async fn make_stream(
        &self,
        name: &str,
        retention: Retention,
        subjects: String,
        replicas: u8,
    ) -> Result<StreamInfo, Fault> {
        let config = json!({
            "name": name,
            "subjects": [subjects],
            "retention": retention.name(),
            "storage": "file",
            "num_replicas": replicas,
            "max_consumers": CONSUMERS_MAX,
        });
        let subject = format!("$JS.API.STREAM.CREATE.{name}");
        let made = api::call(&self.link, self.deadline(), &subject, &config).await;
        match made {
            // Somebody else was faster, and perhaps of another mind.
            Err(fault) if fault.is_api(code::NAME_IN_USE) => self.stream_info(name).await,
            made => made,
        }
    }

    /// The consumer of this name, if there is one.
    pub(super) async fn find(&self, name: &str) -> Result<Option<Found>, Fault> {
        let _turn = self.asking.acquire().await.expect("it is never closed");
        let subject = format!("$JS.API.CONSUMER.INFO.{}.{name}", self.stream);
        match api::call(&self.link, self.deadline(), &subject, &json!({})).await {
            Ok(found) => Ok(Some(found)),
            // Without a stream there are none.
            Err(fault) if fault.is_api(code::NO_CONSUMER) || fault.is_api(code::NO_STREAM) => {
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Makes a consumer, or finds it made the same way.
    pub(super) async fn create(&self, wanted: &Wanted, begin: Begin) -> Result<Found, Fault> {
        self.write("create", wanted, wanted.config(begin)).await
    }

    /// Sets a consumer back to what it has to be.
    pub(super) async fn update(&self, wanted: &Wanted) -> Result<Found, Fault> {
        let subject = format!("$JS.API.CONSUMER.INFO.{}.{}", self.stream, wanted.name);
        let now: Value = api::call(&self.link, self.deadline(), &subject, &json!({})).await?;
        let mut config = wanted.config(Begin::All);
        for field in KEPT {
            match now["config"].get(field) {
                Some(value) => config[field] = value.clone(),
                None => {
                    config
                        .as_object_mut()
                        .expect("it is made as one")
                        .remove(field);
                }
            }
        }
        self.write("update", wanted, config).await
    }

    async fn write(&self, action: &str, wanted: &Wanted, config: Value) -> Result<Found, Fault> {
        let _turn = self.asking.acquire().await.expect("it is never closed");
        let Self { stream, link, .. } = self;
        // With the filter in the subject, permissions can be about it.
        let subject = format!(
            "$JS.API.CONSUMER.CREATE.{stream}.{}.{}",
            wanted.name, wanted.filter
        );
        let request = json!({ "stream_name": stream, "action": action, "config": config });
        api::call(link, self.deadline(), &subject, &request).await
    }

    /// Why there is no consumer of this name.
    pub(super) fn explained(&self, fault: Fault, name: &str) -> StoreError {
        let what = format_args!("consumer '{name}'");
        match fault.is_api(code::CONSUMERS_FULL) {
            true => StoreError::unfit(format_args!(
                "{what}: stream '{}' takes no more consumers: raise its max_consumers, which is \
                 1000 on servers of 2.15 unless it is set, or choose fewer partitions",
                self.stream
            )),
            false => fault.of_read(what),
        }
    }

    /// Deletes a consumer; one that is gone already is fine.
    pub(super) async fn delete(&self, name: &str) -> Result<(), Fault> {
        let _turn = self.asking.acquire().await.expect("it is never closed");
        let subject = format!("$JS.API.CONSUMER.DELETE.{}.{name}", self.stream);
        let deleted = api::call::<Value>(&self.link, self.deadline(), &subject, &json!({})).await;
        match deleted {
            Err(fault) if !fault.is_api(code::NO_CONSUMER) => Err(fault),
            _ => Ok(()),
        }
    }

    /// The names of all consumers of the stream.
    pub(super) async fn names(&self) -> Result<Vec<String>, Fault> {
        #[derive(Deserialize)]
        struct Page {
            total: usize,
            consumers: Option<Vec<String>>,
        }
        let subject = format!("$JS.API.CONSUMER.NAMES.{}", self.stream);
        let mut names = Vec::new();
        loop {
            let asked = json!({ "offset": names.len() });
            let page: Page = api::call(&self.link, self.deadline(), &subject, &asked).await?;
            let found = page.consumers.unwrap_or_default();
            let is_last = found.is_empty() || names.len() + found.len() >= page.total;
            names.extend(found);
            if is_last {
                return Ok(names);
            }
        }
    }

    /// Tells the server what became of a message. What does not get there is
    /// as if the message was lost: it comes again.
    pub(super) async fn say(&self, message: &Message, words: Vec<u8>) {
        self.say_to(message.reply(), words).await;
    }

    /// The same, by where the server listens for that.
    pub(super) async fn say_to(&self, subject: Subject, words: Vec<u8>) {
        let _unsent = self.client.publish(subject, words.into()).await;
    }

    /// Publishes, and waits until a stream has stored it.
    pub(super) async fn store(
        &self,
        subject: &str,
        headers: HeaderMap,
        payload: Vec<u8>,
    ) -> Result<(), Fault> {
        #[derive(Deserialize)]
        struct Ack {
            seq: u64,
        }
        let asking = self
            .link
            .request(self.deadline(), subject, headers, payload);
        let ack: Ack = api::parsed(&asking.await?)?;
        match ack.seq {
            0 => Err(Fault::Garbled("an acknowledgement without a sequence")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_are_for_the_subjects_that_servers_say() {
        for (pattern, subject, is_for) in [
            ("work.>", "work.p.0", true),
            ("work.>", "work", false),
            ("work.*.0", "work.p.0", true),
            ("work.*.0", "work.p.1", false),
            ("work.*", "work.p.0", false),
            (">", "work", true),
            ("work.p.0", "work.p.0", true),
            ("work.p.0.x", "work.p.0", false),
        ] {
            assert_eq!(matches(pattern, subject), is_for, "{pattern} {subject}");
        }
    }
}
