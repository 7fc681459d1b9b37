//! A backlog, handled by plain durable consumers and by subscriptions, in
//! turns: what divvy adds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::Stream;
use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, Manager, Shutdown, StaticSource};
use divvy::subscriptions::{
    Failure, Handler, Message, Retention, SubscriptionSettings, Subscriptions,
};
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::place::Place;
use super::publisher::Publishing;

/// Turns of each.
const TURNS: usize = 5;
/// Longer than any backlog takes.
const PATIENCE: Duration = Duration::from_secs(300);
/// What the streams of this measurement are called.
pub(super) const KIND: &str = "backlog";

/// Messages in a second, by the median turn of each; and the median of what
/// pairs of turns compare to.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Overhead {
    pub(super) per_second: f64,
    pub(super) plain_per_second: f64,
    /// By how much longer the same takes with divvy.
    pub(super) ratio: f64,
}

pub(super) async fn measure(place: &Place, messages: u32) -> anyhow::Result<Overhead> {
    let settings = SubscriptionSettings {
        retention: Some(Retention::Limits),
        ..place.subscription(KIND)
    };
    let client = place.client().await?;
    // Makes the stream.
    Subscriptions::open(&place.url, &place.reach, settings.clone(), Nothing).await?;
    let publishing = Publishing {
        client: client.clone(),
        settings: settings.clone(),
        partitions: place.partitions,
        first: 0,
        least: messages,
        rate: None,
        is_enough: Arc::new(AtomicBool::new(true)),
    };
    publishing.run(None).await?;
    let context = async_nats::jetstream::new(client);
    let total = u64::from(place.partitions) * u64::from(messages);
    let (mut own, mut plain) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let stream = context.get_stream(&settings.stream).await;
        let stream = stream.map_err(|error| anyhow!("the backlog's stream: {error}"))?;
        let own_settings = SubscriptionSettings {
            name: format!("own-{turn}"),
            ..settings.clone()
        };
        // Each comes first as often as the other, and neither finds what the
        // other left.
        for is_own in [turn % 2 == 0, turn % 2 == 1] {
            match is_own {
                true => own.push(own_turn(place, own_settings.clone(), total).await?),
                false => plain.push(plain_turn(place, &settings, &stream, total).await?),
            }
            clear(&stream).await?;
        }
    }
    // Of two that come one after the other, a machine that is busy for a while
    // slows both.
    let pairs = own.iter().zip(&plain);
    let ratios = pairs.map(|(own, plain)| own.as_secs_f64() / plain.as_secs_f64());
    let rate =
        |times: Vec<Duration>| total as f64 / median(times.iter().map(Duration::as_secs_f64));
    Ok(Overhead {
        ratio: median(ratios),
        per_second: rate(own),
        plain_per_second: rate(plain),
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Counts messages. The clock starts when the first message of every partition
/// is there, and until then nobody goes on: how fast consumers begin is not
/// compared, only how fast messages are handled.
struct Count {
    waiting: AtomicU32,
    partitions: u32,
    seen: AtomicU64,
    total: u64,
    is_open: AtomicBool,
    first: watch::Sender<Option<Instant>>,
    last: watch::Sender<Option<Instant>>,
}

impl Count {
    fn new(partitions: u32, total: u64) -> Arc<Self> {
        Arc::new(Self {
            waiting: AtomicU32::new(0),
            partitions,
            seen: AtomicU64::new(0),
            total,
            is_open: AtomicBool::new(false),
            first: watch::Sender::new(None),
            last: watch::Sender::new(None),
        })
    }

    async fn add(&self) {
        if !self.is_open.load(Ordering::Acquire) {
            self.begin().await;
        }
        let before = self.seen.fetch_add(1, Ordering::Relaxed);
        if before + 1 == self.total {
            self.last.send_replace(Some(Instant::now()));
        }
    }

    async fn begin(&self) {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        if before + 1 == self.partitions {
            self.first.send_replace(Some(Instant::now()));
            self.is_open.store(true, Ordering::Release);
        }
        let mut first = self.first.subscribe();
        let _open = first.wait_for(Option::is_some).await.is_ok();
    }

    async fn took(&self) -> anyhow::Result<Duration> {
        let mut last = self.last.subscribe();
        let ended = timeout(PATIENCE, last.wait_for(Option::is_some)).await;
        let last = *ended.context("the backlog was not handled in time")??;
        let first = *self.first.borrow();
        let took = last.zip(first).map(|(last, first)| last - first);
        took.context("the backlog was never begun")
    }
}

/// One task for each partition, as it is written without divvy.
async fn plain_turn(
    place: &Place,
    settings: &SubscriptionSettings,
    stream: &Stream,
    total: u64,
) -> anyhow::Result<Duration> {
    let mut consumers = Vec::new();
    for partition in &place.all()? {
        let config = pull::Config {
            durable_name: Some(format!("plain-{}", partition.as_str().replace(':', "-"))),
            filter_subject: settings.subject(partition)?,
            ack_policy: AckPolicy::Explicit,
            ack_wait: settings.ack_wait,
            max_ack_pending: 1,
            ..pull::Config::default()
        };
        let made = stream.create_consumer(config).await;
        consumers.push(made.map_err(|error| anyhow!("a plain consumer: {error}"))?);
    }
    let count = Count::new(place.partitions, total);
    let mut tasks = JoinSet::new();
    for consumer in consumers {
        let count = Arc::clone(&count);
        let batch = settings.batch as usize;
        tasks.spawn(async move {
            let messages = consumer
                .stream()
                .max_messages_per_batch(batch)
                .messages()
                .await;
            let Ok(mut messages) = messages else { return };
            while let Some(Ok(message)) = messages.next().await {
                count.add().await;
                if message.ack().await.is_err() {
                    return;
                }
            }
        });
    }
    let took = count.took().await;
    tasks.shutdown().await;
    took
}

/// A worker that owns everything.
async fn own_turn(
    place: &Place,
    settings: SubscriptionSettings,
    total: u64,
) -> anyhow::Result<Duration> {
    let count = Count::new(place.partitions, total);
    let handler = Counting(Arc::clone(&count));
    let subscriptions = Subscriptions::open(&place.url, &place.reach, settings, handler).await?;
    subscriptions.ensure(&place.all()?).await?;
    let store = (place.url.clone(), place.reach.clone());
    let manager = Manager::builder(store, StaticSource::new(place.all()?))
        .settings(place.manager("overhead".to_owned()))
        .hooks(subscriptions)
        .start()
        .await?;
    let took = count.took().await;
    manager.stop(Shutdown::Leave).await?;
    took
}

/// Deletes all consumers, so that none weighs on the next turn.
async fn clear(stream: &Stream) -> anyhow::Result<()> {
    let mut names = Vec::new();
    let mut listing = stream.consumer_names();
    while let Some(name) = listing.next().await {
        names.push(name.map_err(|error| anyhow!("consumers: {error}"))?);
    }
    for name in names {
        let deleted = stream.delete_consumer(&name).await;
        deleted.map_err(|error| anyhow!("consumer {name}: {error}"))?;
    }
    Ok(())
}

struct Counting(Arc<Count>);

#[async_trait]
impl Handler for Counting {
    async fn handle(&self, _: &Message, _: &Partition, _: &Grant) -> Result<(), Failure> {
        self.0.add().await;
        Ok(())
    }
}

/// Handles nothing: for who only makes streams and consumers.
pub(super) struct Nothing;

#[async_trait]
impl Handler for Nothing {
    async fn handle(&self, _: &Message, _: &Partition, _: &Grant) -> Result<(), Failure> {
        Err(Failure::retry("nobody handles messages here"))
    }
}
