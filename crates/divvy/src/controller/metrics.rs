//! What a controller counts and measures, in the text form that Prometheus
//! reads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::lease::StopReason;

use crate::manager::MetricLabels;
use crate::manager::metrics::{Page, escaped};

/// Most groups whose starts are told apart.
const GROUPS_MAX: usize = 1_000;
/// Churn is of the last minute.
const CHURN: Duration = Duration::from_secs(60);
/// Starts and stops of the last minute that are counted exactly.
const CHURN_MAX: usize = 100_000;

/// Counters and gauges of one controller. All names begin with `divvy_lease_`.
#[derive(Debug, Default)]
pub struct ControllerMetrics {
    pub(super) owned: AtomicU64,
    pub(super) unowned: AtomicU64,
    pub(super) unconfirmed_stops: AtomicU64,
    pub(super) members: AtomicU64,
    pub(super) backoff: AtomicU64,
    pub(super) backoffs: AtomicU64,
    pub(super) start_failures: AtomicU64,
    pub(super) renewal_failures: AtomicU64,
    pub(super) events_lost: AtomicU64,
    starts: Mutex<BTreeMap<String, u64>>,
    stops: Mutex<BTreeMap<StopReason, u64>>,
    misaligned: Mutex<BTreeMap<&'static str, u64>>,
    churn: Mutex<std::collections::VecDeque<Moment>>,
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ControllerMetrics {
    pub(super) fn started(&self, group: &str, now: Moment) {
        let mut starts = locked(&self.starts);
        if let Some(count) = starts.get_mut(group) {
            *count += 1;
        } else if starts.len() < GROUPS_MAX {
            starts.insert(group.to_owned(), 1);
        }
        drop(starts);
        self.moved(now);
    }

    pub(super) fn stopped(&self, reason: StopReason, now: Moment) {
        *locked(&self.stops).entry(reason).or_default() += 1;
        self.moved(now);
    }

    fn moved(&self, now: Moment) {
        let mut churn = locked(&self.churn);
        churn.push_back(now);
        while churn.len() > CHURN_MAX {
            churn.pop_front();
        }
        forget_old(&mut churn, now);
    }

    pub(super) fn misaligned(&self, counts: BTreeMap<&'static str, u64>) {
        *locked(&self.misaligned) = counts;
    }

    /// How many partitions this worker has.
    pub fn owned(&self) -> u64 {
        self.owned.load(Ordering::Relaxed)
    }

    /// How many consumers could not be started.
    pub fn start_failures(&self) -> u64 {
        self.start_failures.load(Ordering::Relaxed)
    }

    /// How often consumers were stopped for this reason.
    pub fn stops(&self, reason: StopReason) -> u64 {
        locked(&self.stops).get(&reason).copied().unwrap_or(0)
    }

    /// How many consumers were started and stopped in the last minute.
    pub fn churn_per_minute(&self, now: Moment) -> u64 {
        let mut churn = locked(&self.churn);
        forget_old(&mut churn, now);
        churn.len() as u64
    }

    /// Everything, in Prometheus' text form; `worker` becomes a label.
    pub fn render(&self, worker: &str, now: Moment) -> String {
        self.render_with(worker, now, &MetricLabels::default())
    }

    /// The same with these labels besides.
    pub fn render_with(&self, worker: &str, now: Moment, labels: &MetricLabels) -> String {
        let mut page = Page::new(worker).with(labels);
        self.render_plain(&mut page);
        page.head(
            "lease_churn_per_minute",
            "gauge",
            "Consumers started and stopped in the last minute",
        );
        page.line("lease_churn_per_minute", "", self.churn_per_minute(now));
        self.render_labelled(&mut page);
        page.into_text()
    }

    fn render_plain(&self, page: &mut Page) {
        page.all([
            (
                "lease_owned_partitions",
                "gauge",
                "Partitions that this worker has",
                &self.owned,
            ),
            (
                "lease_unowned_partitions",
                "gauge",
                "Partitions that nobody has, of those that this worker is the first for",
                &self.unowned,
            ),
            (
                "lease_unconfirmed_stops",
                "gauge",
                "Partitions whose stop was not confirmed in time: their leases are left to expire",
                &self.unconfirmed_stops,
            ),
            (
                "lease_members",
                "gauge",
                "Live workers that this worker knows of",
                &self.members,
            ),
            (
                "lease_backoff_active",
                "gauge",
                "Whether the store has failed so lately that nothing is taken",
                &self.backoff,
            ),
            (
                "lease_backoffs_total",
                "counter",
                "How often the store failed",
                &self.backoffs,
            ),
            (
                "lease_start_failures_total",
                "counter",
                "Consumers that could not be started",
                &self.start_failures,
            ),
            (
                "lease_renewal_failures_total",
                "counter",
                "Renewals of leases that failed",
                &self.renewal_failures,
            ),
            (
                "lease_events_lost_total",
                "counter",
                "Events that the listener did not take in time",
                &self.events_lost,
            ),
        ]);
    }

    fn render_labelled(&self, page: &mut Page) {
        page.head(
            "lease_starts_total",
            "counter",
            "Consumers started, by group",
        );
        for (group, count) in locked(&self.starts).iter() {
            let label = format!(",group=\"{}\"", escaped(group));
            page.line("lease_starts_total", &label, count);
        }
        page.head(
            "lease_stops_total",
            "counter",
            "Consumers stopped, by reason",
        );
        let stops = locked(&self.stops);
        for reason in StopReason::ALL {
            let label = format!(",reason=\"{reason}\"");
            let count = stops.get(&reason).copied().unwrap_or(0);
            page.line("lease_stops_total", &label, count);
        }
        drop(stops);
        page.head(
            "lease_misaligned_partitions",
            "gauge",
            "Partitions that are not where they should be, by what keeps them",
        );
        for (why, count) in locked(&self.misaligned).iter() {
            let label = format!(",reason=\"{why}\"");
            page.line("lease_misaligned_partitions", &label, count);
        }
    }
}

fn forget_old(churn: &mut std::collections::VecDeque<Moment>, now: Moment) {
    while churn.front().is_some_and(|at| now.since(*at) > CHURN) {
        churn.pop_front();
    }
}
