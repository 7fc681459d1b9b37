//! What a manager counts and measures, in the text form that Prometheus reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use divvy_core::leader::{Handover, State};

use super::error::state_name;
use super::labels::MetricLabels;

const STATES: [State; 9] = [
    State::Init,
    State::ClaimingId,
    State::Election,
    State::WaitingAssignment,
    State::Stable,
    State::Scaling,
    State::Rebalancing,
    State::Emergency,
    State::Shutdown,
];

/// Upper bounds of times, in seconds.
const SECONDS: [f64; 12] = [
    0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0,
];
/// Upper bounds of shares.
const SHARES: [f64; 8] = [0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.99, 1.0];

/// Most causes of moves that are told apart.
const CAUSES_MAX: usize = 32;

/// Counters, gauges and histograms of one manager. All names begin with
/// `divvy_`.
#[derive(Debug)]
pub struct Metrics {
    state: AtomicU64,
    pub(super) is_leader: AtomicU64,
    pub(super) assigned_partitions: AtomicU64,
    pub(super) unowned_partitions: AtomicU64,
    pub(super) assignment_epoch: AtomicU64,
    pub(super) assignment_version: AtomicU64,
    transitions: [[AtomicU64; STATES.len()]; STATES.len()],
    pub(super) assignment_changes: AtomicU64,
    pub(super) leadership_changes: AtomicU64,
    pub(super) heartbeat_failures: AtomicU64,
    pub(super) hook_failures: AtomicU64,
    pub(super) calls_lost: AtomicU64,
    pub(super) grants: AtomicU64,
    pub(super) revocations: AtomicU64,
    moves: Mutex<BTreeMap<String, u64>>,
    handover_seconds: [Histogram<{ SECONDS.len() }>; Handover::ALL.len()],
    state_seconds: [Histogram<{ SECONDS.len() }>; STATES.len()],
    calculation_seconds: Histogram<{ SECONDS.len() }>,
    pub(super) start_seconds: Histogram<{ SECONDS.len() }>,
    pub(super) stop_seconds: Histogram<{ SECONDS.len() }>,
    affinity: Histogram<{ SHARES.len() }>,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histogram::new(SECONDS);
        Self {
            state: AtomicU64::default(),
            is_leader: AtomicU64::default(),
            assigned_partitions: AtomicU64::default(),
            unowned_partitions: AtomicU64::default(),
            assignment_epoch: AtomicU64::default(),
            assignment_version: AtomicU64::default(),
            transitions: Default::default(),
            assignment_changes: AtomicU64::default(),
            leadership_changes: AtomicU64::default(),
            heartbeat_failures: AtomicU64::default(),
            hook_failures: AtomicU64::default(),
            calls_lost: AtomicU64::default(),
            grants: AtomicU64::default(),
            revocations: AtomicU64::default(),
            moves: Mutex::default(),
            handover_seconds: std::array::from_fn(|_| seconds()),
            state_seconds: std::array::from_fn(|_| seconds()),
            calculation_seconds: seconds(),
            start_seconds: seconds(),
            stop_seconds: seconds(),
            affinity: Histogram::new(SHARES),
        }
    }
}

impl Metrics {
    pub(super) fn state_changed(&self, from: State, to: State, after: Duration) {
        self.state.store(to as u64, Ordering::Relaxed);
        self.transitions[from as usize][to as usize].fetch_add(1, Ordering::Relaxed);
        self.state_seconds[from as usize].observe(after.as_secs_f64());
    }

    pub(super) fn calculated(&self, after: Duration, affinity: Option<f64>) {
        self.calculation_seconds.observe(after.as_secs_f64());
        if let Some(share) = affinity {
            self.affinity.observe(share);
        }
    }

    /// The driver is gone without a last word: it is shut down, neither leads
    /// nor owns anything.
    pub(super) fn nothing_left(&self) {
        let state = State::Shutdown as u64;
        self.state.store(state, Ordering::Relaxed);
        self.is_leader.store(0, Ordering::Relaxed);
        self.assigned_partitions.store(0, Ordering::Relaxed);
    }

    pub(super) fn moved(&self, cause: &str, count: u64) {
        let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sum) = moves.get_mut(cause) {
            *sum += count;
        } else if moves.len() < CAUSES_MAX {
            moves.insert(cause.to_owned(), count);
        }
    }

    pub(super) fn handed_over(&self, why: Handover, took: Duration, count: u64) {
        self.handover_seconds[why as usize].observe_many(took.as_secs_f64(), count);
    }

    /// How often heartbeats failed.
    pub fn heartbeat_failures(&self) -> u64 {
        self.heartbeat_failures.load(Ordering::Relaxed)
    }

    /// How often the assignment of this worker changed.
    pub fn assignment_changes(&self) -> u64 {
        self.assignment_changes.load(Ordering::Relaxed)
    }

    /// Everything, in Prometheus' text form; `worker` becomes a label.
    pub fn render(&self, worker: &str) -> String {
        self.render_with(worker, &MetricLabels::default())
    }

    /// The same with these labels besides.
    pub fn render_with(&self, worker: &str, labels: &MetricLabels) -> String {
        let mut page = Page::new(worker).with(labels);
        self.render_gauges(&mut page);
        self.render_counters(&mut page);
        self.render_labelled(&mut page);
        page.into_text()
    }

    fn render_gauges(&self, page: &mut Page) {
        page.all([
            (
                "worker_state",
                "gauge",
                "What the worker is doing, 0 to 8",
                &self.state,
            ),
            ("is_leader", "gauge", "Whether it leads", &self.is_leader),
            (
                "assigned_partitions",
                "gauge",
                "Partitions that it owns",
                &self.assigned_partitions,
            ),
            (
                "unowned_partitions",
                "gauge",
                "Partitions that nobody owns, as leader",
                &self.unowned_partitions,
            ),
            (
                "assignment_epoch",
                "gauge",
                "Epoch of the assignment in force",
                &self.assignment_epoch,
            ),
            (
                "assignment_version",
                "gauge",
                "Number, in its epoch, of the assignment in force",
                &self.assignment_version,
            ),
        ]);
    }

    fn render_counters(&self, page: &mut Page) {
        page.all([
            (
                "assignment_changes_total",
                "counter",
                "Changes of what it owns",
                &self.assignment_changes,
            ),
            (
                "leadership_changes_total",
                "counter",
                "Times that it began or ceased to lead",
                &self.leadership_changes,
            ),
            (
                "heartbeat_failures_total",
                "counter",
                "Renewals of its lease that failed",
                &self.heartbeat_failures,
            ),
            (
                "grants_total",
                "counter",
                "Partitions that it gave owners, as leader",
                &self.grants,
            ),
            (
                "revocations_total",
                "counter",
                "Partitions that it asked back, as leader",
                &self.revocations,
            ),
            (
                "hook_failures_total",
                "counter",
                "Hooks that failed or panicked",
                &self.hook_failures,
            ),
            (
                "hook_calls_lost_total",
                "counter",
                "Calls of slow hooks that were left out",
                &self.calls_lost,
            ),
        ]);
    }

    fn render_labelled(&self, page: &mut Page) {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        page.head("moves_total", "counter", "Moves that it made as leader");
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        for (cause, count) in moves.iter() {
            let cause = escaped(cause);
            page.line("moves_total", &format!(",cause=\"{cause}\""), count);
        }
        drop(moves);
        page.head("state_transitions_total", "counter", "Changes of state");
        for (from, row) in STATES.iter().zip(&self.transitions) {
            for (to, count) in STATES.iter().zip(row) {
                let count = read(count);
                let (from, to) = (state_name(*from), state_name(*to));
                if count > 0 {
                    let labels = format!(",from=\"{from}\",to=\"{to}\"");
                    page.line("state_transitions_total", &labels, count);
                }
            }
        }
        page.head("state_duration_seconds", "histogram", "Time in each state");
        for (state, histogram) in STATES.iter().zip(&self.state_seconds) {
            if histogram.count() > 0 {
                let labels = format!(",state=\"{}\"", state_name(*state));
                histogram.render(page, "state_duration_seconds", &labels);
            }
        }
        let help = "From the loss of an owner to the next, as leader";
        page.head("handover_seconds", "histogram", help);
        for (why, histogram) in Handover::ALL.iter().zip(&self.handover_seconds) {
            if histogram.count() > 0 {
                let labels = format!(",cause=\"{}\"", why.as_str());
                histogram.render(page, "handover_seconds", &labels);
            }
        }
        let times = [
            (
                "assignment_calculation_seconds",
                "Time to calculate an assignment",
                &self.calculation_seconds,
            ),
            (
                "start_seconds",
                "From a grant to its start",
                &self.start_seconds,
            ),
            (
                "stop_seconds",
                "From a revocation to its stop",
                &self.stop_seconds,
            ),
        ];
        for (name, help, histogram) in times {
            page.head(name, "histogram", help);
            histogram.render(page, name, "");
        }
        page.head("affinity_score", "histogram", "Share that kept its owner");
        self.affinity.render(page, "affinity_score", "");
    }
}

/// Counts of values up to each of some bounds.
#[derive(Debug)]
pub(super) struct Histogram<const N: usize> {
    bounds: [f64; N],
    counts: [AtomicU64; N],
    beyond: AtomicU64,
    /// In millionths.
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: [f64; N]) -> Self {
        Self {
            bounds,
            counts: std::array::from_fn(|_| AtomicU64::default()),
            beyond: AtomicU64::default(),
            sum: AtomicU64::default(),
        }
    }

    pub(super) fn observe(&self, value: f64) {
        self.observe_many(value, 1);
    }

    /// The same value, so many times.
    fn observe_many(&self, value: f64, times: u64) {
        let at = self.bounds.iter().position(|bound| value <= *bound);
        let count = at.map_or(&self.beyond, |at| &self.counts[at]);
        count.fetch_add(times, Ordering::Relaxed);
        let millionths = (value * 1e6) as u64 * times;
        self.sum.fetch_add(millionths, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        let counts = self.counts.iter().chain([&self.beyond]);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn render(&self, page: &mut Page, name: &str, labels: &str) {
        let mut total = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            total += count.load(Ordering::Relaxed);
            let labels = format!("{labels},le=\"{bound}\"");
            page.line(&format!("{name}_bucket"), &labels, total);
        }
        total += self.beyond.load(Ordering::Relaxed);
        let labels_beyond = format!("{labels},le=\"+Inf\"");
        page.line(&format!("{name}_bucket"), &labels_beyond, total);
        let sum = self.sum.load(Ordering::Relaxed) as f64 / 1e6;
        page.line(&format!("{name}_sum"), labels, sum);
        page.line(&format!("{name}_count"), labels, total);
    }
}

pub(crate) struct Page {
    text: String,
    /// Of every line.
    labels: String,
}

impl Page {
    pub(crate) fn new(worker: &str) -> Self {
        Self {
            text: String::new(),
            labels: format!("worker=\"{}\"", escaped(worker)),
        }
    }

    /// With these labels on every line.
    #[must_use]
    pub(crate) fn with(mut self, labels: &MetricLabels) -> Self {
        self.labels += labels.as_str();
        self
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn all<const N: usize>(&mut self, values: [(&str, &str, &str, &AtomicU64); N]) {
        for (name, kind, help, value) in values {
            self.head(name, kind, help);
            self.line(name, "", value.load(Ordering::Relaxed));
        }
    }

    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _text = write!(
            self.text,
            "# HELP divvy_{name} {help}\n# TYPE divvy_{name} {kind}\n"
        );
    }

    pub(crate) fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let all = &self.labels;
        let _text = writeln!(self.text, "divvy_{name}{{{all}{labels}}} {value}");
    }
}

/// Text as the value of a label.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_numbered_as_the_specification_orders_them() {
        for (number, state) in STATES.iter().enumerate() {
            assert_eq!(*state as usize, number);
        }
    }

    #[test]
    fn of_a_driver_that_is_gone_no_last_value_stays() {
        let metrics = Metrics::default();
        metrics.state_changed(State::Init, State::Stable, Duration::ZERO);
        metrics.is_leader.store(1, Ordering::Relaxed);
        metrics.assigned_partitions.store(7, Ordering::Relaxed);
        metrics.nothing_left();
        let page = metrics.render("w");
        for line in [
            "divvy_worker_state{worker=\"w\"} 8",
            "divvy_is_leader{worker=\"w\"} 0",
            "divvy_assigned_partitions{worker=\"w\"} 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
    }

    #[test]
    fn a_page_holds_what_was_counted() {
        let metrics = Metrics::default();
        let tenth = Duration::from_millis(100);
        metrics.state_changed(State::Init, State::ClaimingId, tenth);
        metrics.state_changed(State::ClaimingId, State::Stable, tenth);
        metrics.calculated(tenth, Some(0.85));
        metrics.handed_over(Handover::Crashed, tenth * 70, 3);
        let page = metrics.render("w\"0");
        for line in [
            "divvy_worker_state{worker=\"w\\\"0\"} 4",
            "divvy_state_transitions_total{worker=\"w\\\"0\",from=\"init\",to=\"claiming_id\"} 1",
            "divvy_state_duration_seconds_bucket{worker=\"w\\\"0\",state=\"init\",le=\"0.05\"} 0",
            "divvy_state_duration_seconds_bucket{worker=\"w\\\"0\",state=\"init\",le=\"0.1\"} 1",
            "divvy_assignment_calculation_seconds_sum{worker=\"w\\\"0\"} 0.1",
            "divvy_affinity_score_bucket{worker=\"w\\\"0\",le=\"0.9\"} 1",
            "divvy_handover_seconds_bucket{worker=\"w\\\"0\",cause=\"crashed\",le=\"15\"} 3",
            "divvy_handover_seconds_sum{worker=\"w\\\"0\",cause=\"crashed\"} 21",
            "divvy_heartbeat_failures_total{worker=\"w\\\"0\"} 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        let labels = MetricLabels::default().with("cluster", "a\"b").unwrap();
        let labelled = metrics.render_with("w", &labels);
        let line = "divvy_affinity_score_bucket{worker=\"w\",cluster=\"a\\\"b\",le=\"0.9\"} 1";
        assert!(labelled.lines().any(|found| found == line), "{labelled}");
        let is_known = |line: &str| line.starts_with("# ") || line.starts_with("divvy_");
        assert!(page.lines().all(is_known), "{page}");
    }
}
