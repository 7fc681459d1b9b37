//! Publishes numbered messages, each partition's one after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use async_nats::{Client, HeaderMap};
use divvy::Partition;
use divvy::subscriptions::SubscriptionSettings;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::desk::{SharedLedger, lock};
use super::place::GROUP;

/// Partitions are shared among so many tasks.
const TASKS: u32 = 16;
/// How long a server may take to store a message before it is sent again.
const STORED_WITHIN: Duration = Duration::from_secs(2);
/// Between two tries to reach a server.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// How long a server may be away altogether.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much to publish, how fast.
#[derive(Debug, Clone)]
pub(super) struct Publishing {
    pub(super) client: Client,
    pub(super) settings: SubscriptionSettings,
    pub(super) partitions: u32,
    /// The number of the first message of each partition.
    pub(super) first: u32,
    /// Messages of each partition, at least, with those before the first.
    pub(super) least: u32,
    /// Messages in a second; as fast as it goes without.
    pub(super) rate: Option<u32>,
    /// Set when no more is needed than the least.
    pub(super) is_enough: Arc<AtomicBool>,
}

impl Publishing {
    /// Publishes until there are enough, and tells the ledger, if there is one,
    /// what the server has stored.
    pub(super) async fn run(self, ledger: Option<SharedLedger>) -> anyhow::Result<()> {
        let mut tasks = JoinSet::new();
        for first in 0..TASKS.min(self.partitions) {
            let (this, ledger) = (self.clone(), ledger.clone());
            tasks.spawn(async move { this.share(first, ledger).await });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// Every so many-th partition, from the first on.
    async fn share(&self, first: u32, ledger: Option<SharedLedger>) -> anyhow::Result<()> {
        let tasks = TASKS.min(self.partitions);
        let mut due = Instant::now();
        // Each task sends its share of the rate.
        let gap = self
            .rate
            .map(|rate| Duration::from_secs_f64(f64::from(tasks) / f64::from(rate)));
        let mut number = self.first;
        while number < self.least || !self.is_enough.load(Ordering::Relaxed) {
            for partition in (first..self.partitions).step_by(tasks as usize) {
                if let Some(gap) = gap {
                    due += gap;
                    sleep_until(due).await;
                }
                self.publish(partition, number).await?;
                if let Some(ledger) = &ledger {
                    lock(ledger).published(partition);
                }
            }
            number += 1;
        }
        Ok(())
    }

    /// Sends a message until the server has stored it, once.
    async fn publish(&self, partition: u32, number: u32) -> anyhow::Result<()> {
        let subject = self
            .settings
            .subject(&Partition::shard(GROUP, partition)?)?;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", format!("{partition}.{number}").as_str());
        let micros = divvy::manager::now().to_origin().as_micros();
        let payload = format!("{number} {micros}");
        let end = Instant::now() + PATIENCE;
        loop {
            let (subject, payload) = (subject.clone(), payload.clone().into());
            let asked = self
                .client
                .request_with_headers(subject, headers.clone(), payload);
            let why = match timeout(STORED_WITHIN, asked).await {
                Ok(Ok(answer)) => {
                    let answer: Value = serde_json::from_slice(&answer.payload)?;
                    if answer["seq"].is_u64() {
                        return Ok(());
                    }
                    answer["error"].to_string()
                }
                Ok(Err(error)) => error.to_string(),
                Err(_elapsed) => "no answer".to_owned(),
            };
            if Instant::now() > end {
                return Err(anyhow!("cannot publish: {why}"));
            }
            sleep(RETRY_DELAY).await;
        }
    }
}
