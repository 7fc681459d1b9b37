//! What subscriptions count, in the text form that Prometheus reads.

use std::sync::atomic::{AtomicU64, Ordering};

use super::health::PartitionHealth;
use crate::manager::metrics::{Page, escaped};

/// Counters of all partitions that this process has owned. All names begin
/// with `divvy_subscription_`.
#[derive(Debug, Default)]
pub struct SubscriptionMetrics {
    pub(super) handled: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) redelivered: AtomicU64,
    pub(super) dead_lettered: AtomicU64,
    pub(super) repaired: AtomicU64,
    pub(super) errors: AtomicU64,
}

impl SubscriptionMetrics {
    /// Messages that were acknowledged.
    pub fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// Times that a handler failed or panicked.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Messages that came, and had been given out before.
    pub fn redelivered(&self) -> u64 {
        self.redelivered.load(Ordering::Relaxed)
    }

    /// Messages that went to the dead letters.
    pub fn dead_lettered(&self) -> u64 {
        self.dead_lettered.load(Ordering::Relaxed)
    }

    /// Times that a consumer was made again, set back or replaced.
    pub fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Everything, with a line for each of these partitions, in Prometheus'
    /// text form; `worker` becomes a label.
    pub(super) fn render(&self, worker: &str, partitions: &[PartitionHealth]) -> String {
        let mut page = Page::new(worker);
        page.all([
            (
                "subscription_handled_total",
                "counter",
                "Messages that were acknowledged",
                &self.handled,
            ),
            (
                "subscription_failed_total",
                "counter",
                "Times that a handler failed",
                &self.failed,
            ),
            (
                "subscription_redelivered_total",
                "counter",
                "Messages that came again",
                &self.redelivered,
            ),
            (
                "subscription_dead_lettered_total",
                "counter",
                "Messages that went to the dead letters",
                &self.dead_lettered,
            ),
            (
                "subscription_repaired_total",
                "counter",
                "Consumers that were repaired",
                &self.repaired,
            ),
            (
                "subscription_errors_total",
                "counter",
                "Things that went wrong",
                &self.errors,
            ),
        ]);
        render_partitions(&mut page, partitions);
        page.into_text()
    }
}

fn render_partitions(page: &mut Page, partitions: &[PartitionHealth]) {
    type Read = fn(&PartitionHealth) -> u64;
    let gauges: [(&str, &str, Read); 5] = [
        ("consuming", "Whether messages are being asked for", |h| {
            u64::from(h.is_consuming)
        }),
        ("lag", "Messages that wait in the stream", |h| h.lag),
        ("in_flight", "Messages that are being handled", |h| {
            h.in_flight
        }),
        (
            "partition_redelivered",
            "Messages that came again since its assignment",
            |h| h.redelivered,
        ),
        (
            "partition_failed",
            "Times that a handler failed since its assignment",
            |h| h.failed,
        ),
    ];
    for (name, help, read) in gauges {
        let name = format!("subscription_{name}");
        page.head(&name, "gauge", help);
        for health in partitions {
            let partition = escaped(health.partition.as_str());
            page.line(&name, &format!(",partition=\"{partition}\""), read(health));
        }
    }
}
