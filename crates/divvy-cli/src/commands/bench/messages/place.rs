//! Where a run's messages and workers are: streams and a cluster of its own.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use async_nats::Client;
use divvy::manager::Settings;
use divvy::store::{Prefix, StoreSettings, StoreUrl, open_key_value};
use divvy::subscriptions::{Retention, SubscriptionSettings};
use divvy::{Partition, Partitions};

use crate::args::{MessagesArgs, RetentionName};

/// The group of all partitions.
pub(super) const GROUP: &str = "p";
/// Heartbeats within a lease.
const BEATS: u32 = 6;
/// Workers and servers are killed; nothing else should fail a start or a stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where everything is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) url: StoreUrl,
    pub(super) reach: StoreSettings,
    pub(super) partitions: u32,
    retention: Retention,
    lease: Duration,
}

impl Place {
    pub(super) fn new(url: StoreUrl, reach: StoreSettings, args: &MessagesArgs) -> Self {
        let retention = match args.retention {
            RetentionName::Limits => Retention::Limits,
            RetentionName::Interest => Retention::Interest,
            RetentionName::Workqueue => Retention::Workqueue,
        };
        Self {
            url,
            reach,
            partitions: args.partitions,
            retention,
            lease: args.lease,
        }
    }

    /// All partitions.
    pub(super) fn all(&self) -> anyhow::Result<Partitions> {
        Ok(Partitions::shards([(GROUP, self.partitions)])?)
    }

    /// How a worker of the run is set.
    pub(super) fn manager(&self, instance: String) -> Settings {
        let mut settings = Settings::fast();
        settings.instance = Some(instance);
        settings.strategy = divvy::StrategySettings::new(divvy::StrategyName::Balanced);
        let leader = &mut settings.leader;
        leader.heartbeat_ttl = self.lease;
        leader.heartbeat_interval = self.lease / BEATS;
        leader.leader_lease = self.lease / 2;
        leader.startup_timeout = PATIENCE;
        leader.shutdown_timeout = PATIENCE / 2;
        leader.start_deadline = PATIENCE / 2;
        leader.stop_deadline = PATIENCE / 2;
        settings
    }

    /// How messages are read; `kind` tells the streams of one run apart.
    pub(super) fn subscription(&self, kind: &str) -> SubscriptionSettings {
        let stream = format!("{}-{kind}", self.reach.cluster);
        let settings = SubscriptionSettings::new(stream.clone(), stream);
        SubscriptionSettings {
            retention: Some(self.retention),
            ack_wait: self.lease.max(Duration::from_secs(1)),
            drain_timeout: Duration::from_secs(10),
            redeliver_delay: Duration::from_millis(100),
            reconcile_interval: Duration::from_secs(5),
            retry_backoff: Duration::from_millis(100),
            // Messages that workers take with them are no poison here.
            max_deliver: 1000,
            max_handlers: 1 << 16,
            ..settings
        }
    }

    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        let client = divvy::store::nats::connect(&self.url, &self.reach).await;
        client.with_context(|| self.url.to_string())
    }

    /// Deletes what a run has made.
    pub(super) async fn clear(&self, kinds: &[&str]) -> anyhow::Result<()> {
        let client = self.client().await?;
        for kind in kinds {
            let settings = self.subscription(kind);
            for stream in [&settings.stream, &settings.dead_letters.stream] {
                // One that was never made is gone, too.
                let subject = format!("$JS.API.STREAM.DELETE.{stream}");
                let deleted = client.request(subject, "".into()).await;
                deleted.map_err(|error| anyhow!("cannot delete stream {stream}: {error}"))?;
            }
        }
        let store = open_key_value(&self.url, &self.reach).await?;
        for entry in store.list(&Prefix::ALL).await? {
            // Nobody else writes there any more.
            let _outcome = store.delete(&entry.key, entry.revision).await?;
        }
        Ok(())
    }
}

/// The number of a partition in its group.
pub(super) fn number(partition: &Partition) -> Option<u32> {
    partition.segments().nth(1)?.parse().ok()
}
