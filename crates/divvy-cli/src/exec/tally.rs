//! What became of the commands of this process, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use divvy::manager::MetricLabels;

/// Counts commands. There is one for the process, as there is one page of
/// metrics.
#[derive(Debug)]
pub(crate) struct Tally {
    started: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
    killed: AtomicU64,
}

static TALLY: Tally = Tally {
    started: AtomicU64::new(0),
    ended: AtomicU64::new(0),
    refused: AtomicU64::new(0),
    killed: AtomicU64::new(0),
};

/// A command was started.
pub(super) fn started() {
    TALLY.started.fetch_add(1, Ordering::Relaxed);
}

/// A command ended by itself, and is started again.
pub(super) fn ended() {
    TALLY.ended.fetch_add(1, Ordering::Relaxed);
}

/// A command could not be started.
pub(super) fn refused() {
    TALLY.refused.fetch_add(1, Ordering::Relaxed);
}

/// A command did not end in time.
pub(super) fn killed() {
    TALLY.killed.fetch_add(1, Ordering::Relaxed);
}

/// All of it in Prometheus' text form.
pub(crate) fn render(worker: &str, labels: &MetricLabels) -> String {
    let rows = [
        (
            "command_starts_total",
            "Commands that were started, again or for the first time",
            &TALLY.started,
        ),
        (
            "command_exits_total",
            "Commands that ended by themselves, and are started again",
            &TALLY.ended,
        ),
        (
            "command_failures_total",
            "Commands that could not be run",
            &TALLY.refused,
        ),
        (
            "command_kills_total",
            "Commands that did not stop in time, and were ended",
            &TALLY.killed,
        ),
    ];
    let mut page = String::new();
    for (name, about, count) in rows {
        let count = count.load(Ordering::Relaxed);
        page += &format!("# HELP divvy_{name} {about}\n# TYPE divvy_{name} counter\n");
        page += &format!("divvy_{name}{{{}}} {count}\n", labels.of(worker));
    }
    page
}
