//! A server, a publisher, and handlers that note what they get.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::Grant;
use divvy::store::{StoreSettings, StoreUrl, Token};
use divvy::subscriptions::{
    Failure, Handler, Message, PartitionHealth, Retention, SubscriptionSettings, Subscriptions,
};
use divvy::{Partition, Partitions};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, until, until_some};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(40);
pub(crate) const RETENTIONS: [Retention; 3] =
    [Retention::Limits, Retention::Interest, Retention::Workqueue];

pub(crate) struct Bed {
    pub(crate) server: NatsServer,
    publisher: Publisher,
}

/// Whoever publishes, and asks servers for what they know.
pub(crate) struct Publisher {
    client: async_nats::Client,
}

impl Deref for Bed {
    type Target = Publisher;

    fn deref(&self) -> &Publisher {
        &self.publisher
    }
}

impl Bed {
    pub(crate) async fn new() -> Self {
        Self::of(NatsVersion::Newest).await
    }

    pub(crate) async fn of(version: NatsVersion) -> Self {
        let server = NatsServer::start(version, NatsOptions::new()).await;
        Self::with(server, None).await
    }

    /// On this server, where a publisher may have to log in.
    pub(crate) async fn with(server: NatsServer, login: Option<(&str, &str)>) -> Self {
        let publisher = Publisher::new(&server.url(), login).await;
        Self { server, publisher }
    }

    pub(crate) fn url(&self) -> StoreUrl {
        self.server.url().parse().unwrap()
    }

    pub(crate) fn reach(&self) -> StoreSettings {
        StoreSettings {
            cluster: "tests".to_owned(),
            connect_timeout: Duration::from_secs(20),
            operation_timeout: Duration::from_secs(5),
            reconnect_delay_max: Duration::from_millis(100),
            ping_interval: Duration::from_secs(1),
            ..StoreSettings::default()
        }
    }

    pub(crate) async fn open(
        &self,
        settings: &SubscriptionSettings,
        handler: impl Handler,
    ) -> Subscriptions {
        let (url, reach) = (self.url(), self.reach());
        let opened = Subscriptions::open(&url, &reach, settings.clone(), handler);
        opened.await.unwrap()
    }

    /// Opens, and owns the first partition.
    pub(crate) async fn owning(
        &self,
        settings: &SubscriptionSettings,
        handler: impl Handler,
    ) -> (Subscriptions, Partition) {
        let subscriptions = self.open(settings, handler).await;
        let partition = shard(0);
        let assigned = subscriptions.assign(&partition, grant(&partition, 1));
        assigned.await.unwrap();
        (subscriptions, partition)
    }
}

impl Publisher {
    /// At these addresses, separated by commas.
    pub(crate) async fn new(urls: &str, login: Option<(&str, &str)>) -> Self {
        let options = async_nats::ConnectOptions::new()
            .reconnect_delay_callback(|_| Duration::from_millis(20));
        let options = match login {
            Some((user, password)) => options.user_and_password(user.into(), password.into()),
            None => options,
        };
        let urls: Vec<_> = urls.split(',').collect();
        let client = options.connect(urls).await.unwrap();
        Self { client }
    }

    /// Publishes the numbers to the partition's subject, and waits until each
    /// is stored.
    pub(crate) async fn publish(
        &self,
        settings: &SubscriptionSettings,
        partition: &Partition,
        numbers: impl IntoIterator<Item = u32>,
    ) {
        let subject = settings.subject(partition).unwrap();
        for number in numbers {
            // Tried again, it is stored once.
            let id = format!("{subject}.{number}");
            let ack = self
                .ask_with(&subject, &number.to_string(), Some(&id))
                .await;
            assert!(ack["seq"].is_u64(), "{ack}");
        }
    }

    /// Asks until there is an answer: the server may be away for a moment.
    pub(crate) async fn ask(&self, subject: &str, body: &str) -> Value {
        self.ask_with(subject, body, None).await
    }

    async fn ask_with(&self, subject: &str, body: &str, id: Option<&str>) -> Value {
        let mut headers = async_nats::HeaderMap::new();
        if let Some(id) = id {
            headers.insert("Nats-Msg-Id", id);
        }
        until_some(SOON, "an answer", async || {
            let (subject, body) = (subject.to_owned(), body.to_owned());
            let asked = self
                .client
                .request_with_headers(subject, headers.clone(), body.into());
            let answer = tokio::time::timeout(Duration::from_secs(5), asked).await;
            let answer = answer.ok()?.ok()?;
            serde_json::from_slice(&answer.payload).ok()
        })
        .await
    }

    pub(crate) async fn api(&self, call: &str, body: Value) -> Value {
        self.ask(&format!("$JS.API.{call}"), &body.to_string())
            .await
    }

    pub(crate) async fn consumer(
        &self,
        settings: &SubscriptionSettings,
        partition: &Partition,
    ) -> Value {
        let (stream, name) = (&settings.stream, settings.consumer(partition).unwrap());
        self.api(&format!("CONSUMER.INFO.{stream}.{name}"), json!({}))
            .await
    }

    /// Names of all consumers of the stream.
    pub(crate) async fn consumers(&self, settings: &SubscriptionSettings) -> Vec<String> {
        let call = format!("CONSUMER.NAMES.{}", settings.stream);
        let answer = self.api(&call, json!({})).await;
        let names = answer["consumers"].as_array().cloned().unwrap_or_default();
        let name = |name: Value| name.as_str().unwrap().to_owned();
        names.into_iter().map(name).collect()
    }

    /// The dead letters: each with its headers and payload as text.
    pub(crate) async fn dead_letters(&self, settings: &SubscriptionSettings) -> Vec<String> {
        let stream = &settings.dead_letters.stream;
        let info = self.api(&format!("STREAM.INFO.{stream}"), json!({})).await;
        let mut letters = Vec::new();
        for sequence in 1..=info["state"]["last_seq"].as_u64().unwrap() {
            let call = format!("STREAM.MSG.GET.{stream}");
            let got = self.api(&call, json!({ "seq": sequence })).await;
            let decoded = |part: &str| {
                let text = got["message"][part].as_str().unwrap_or_default();
                let bytes = data_encoding::BASE64.decode(text.as_bytes()).unwrap();
                String::from_utf8(bytes).unwrap()
            };
            letters.push(format!("{}{}", decoded("hdrs"), decoded("data")));
        }
        letters
    }
}

/// Short timings, and a stream of this kind.
pub(crate) fn settings(retention: Retention) -> SubscriptionSettings {
    SubscriptionSettings {
        retention: Some(retention),
        ack_wait: Duration::from_secs(2),
        redeliver_delay: Duration::from_millis(20),
        retry_backoff: Duration::from_millis(20),
        reconcile_interval: Duration::from_millis(200),
        drain_timeout: SOON,
        ..SubscriptionSettings::new("orders", "work")
    }
}

pub(crate) fn shards(count: u32) -> Partitions {
    Partitions::shards([("p", count)]).unwrap()
}

pub(crate) fn shard(number: u32) -> Partition {
    Partition::shard("p", number).unwrap()
}

pub(crate) fn grant(partition: &Partition, token: i64) -> Grant {
    Grant::standing(partition.clone(), Token::new(token).unwrap())
}

pub(crate) async fn health(
    subscriptions: &Subscriptions,
    partition: &Partition,
) -> PartitionHealth {
    let all = subscriptions.health();
    let found = all.into_iter().find(|found| found.partition == *partition);
    found.expect("it is assigned")
}

/// What a handler does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Do,
    Fail,
    Poison,
    Panic,
    /// Waits until the gate is open.
    Wait,
}

/// A handled message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) partition: String,
    pub(crate) number: u32,
    pub(crate) token: i64,
    pub(crate) deliveries: u64,
}

/// What several handlers did.
pub(crate) struct Ledger {
    seen: Mutex<Vec<Seen>>,
    tried: AtomicUsize,
    at_once: AtomicUsize,
    most: AtomicUsize,
    gate: watch::Sender<bool>,
}

impl Ledger {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            seen: Mutex::default(),
            tried: AtomicUsize::new(0),
            at_once: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            gate: watch::Sender::new(false),
        })
    }

    /// A handler that does what `choose` says for the number and the times
    /// that it was given out.
    pub(crate) fn handler(
        self: &Arc<Self>,
        choose: impl Fn(u32, u64) -> Act + Send + Sync + 'static,
    ) -> Noting {
        Noting {
            ledger: Arc::clone(self),
            choose: Box::new(choose),
        }
    }

    pub(crate) fn open_gate(&self) {
        self.gate.send_replace(true);
    }

    /// Handlers that began, whatever became of them.
    pub(crate) fn tried(&self) -> usize {
        self.tried.load(Ordering::SeqCst)
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What was done of each partition, in order.
    pub(crate) fn numbers(&self) -> BTreeMap<String, Vec<u32>> {
        let mut numbers: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for seen in self.seen() {
            numbers.entry(seen.partition).or_default().push(seen.number);
        }
        numbers
    }

    pub(crate) async fn until_done(&self, count: usize) {
        let what = format!("{count} are done");
        until(SOON, &what, async || self.seen().len() >= count).await;
    }

    pub(crate) async fn until_tried(&self, count: usize) {
        let what = format!("{count} are tried");
        until(SOON, &what, async || self.tried() >= count).await;
    }

    /// Each partition's numbers 0 to `count - 1`, once each and in order.
    pub(crate) fn check_in_order(&self, partitions: &Partitions, count: u32) {
        let numbers = self.numbers();
        for partition in partitions {
            let found = numbers.get(partition.as_str()).cloned().unwrap_or_default();
            let expected: Vec<u32> = (0..count).collect();
            assert_eq!(found, expected, "{partition}");
        }
    }
}

pub(crate) struct Noting {
    ledger: Arc<Ledger>,
    choose: Box<dyn Fn(u32, u64) -> Act + Send + Sync>,
}

#[async_trait]
impl Handler for Noting {
    async fn handle(
        &self,
        message: &Message,
        partition: &Partition,
        grant: &Grant,
    ) -> Result<(), Failure> {
        let ledger = &*self.ledger;
        let number = std::str::from_utf8(message.payload())?.parse()?;
        ledger.tried.fetch_add(1, Ordering::SeqCst);
        let now = ledger.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        ledger.most.fetch_max(now, Ordering::SeqCst);
        let act = (self.choose)(number, message.deliveries());
        if act == Act::Wait {
            let waiting = Waiting(ledger);
            let _open = ledger.gate.subscribe().wait_for(|open| *open).await.is_ok();
            drop(waiting);
        } else {
            ledger.at_once.fetch_sub(1, Ordering::SeqCst);
        }
        match act {
            Act::Fail => return Err(Failure::retry("not today")),
            Act::Poison => return Err(Failure::poison("never")),
            Act::Panic => panic!("a handler panics"),
            Act::Do | Act::Wait => {}
        }
        ledger.seen.lock().unwrap().push(Seen {
            partition: partition.to_string(),
            number,
            token: grant.token().get(),
            deliveries: message.deliveries(),
        });
        Ok(())
    }
}

/// Counts down also where a handler is dropped.
struct Waiting<'a>(&'a Ledger);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
    }
}
