//! What is shown, and what changed of it since it was last shown.

use std::collections::BTreeMap;

use crate::document::{
    API, ChoicesView, ClockView, Delta, InvariantsView, PartitionsView, Point, ScenarioState,
    SettingsView, Snapshot, StoreDocument, Summary, WorkerView,
};

/// Workers that are gone and still shown.
pub(crate) const GONE_SHOWN_MAX: usize = 64;
/// Points of the charts that are kept.
pub(crate) const POINTS_MAX: usize = 600;
/// Violations that are kept: the first says what went wrong.
pub(crate) const VIOLATIONS_MAX: usize = 16;

/// All that is shown at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    pub(crate) clock: ClockView,
    pub(crate) settings: SettingsView,
    pub(crate) store: StoreDocument,
    pub(crate) workers: BTreeMap<usize, WorkerView>,
    pub(crate) partitions: PartitionsView,
    pub(crate) summary: Summary,
    pub(crate) invariants: InvariantsView,
    pub(crate) scenario: Option<ScenarioState>,
    pub(crate) point: Option<Point>,
}

/// Where something comes from, and what can be done and chosen there.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) run: String,
    pub(crate) source: &'static str,
    pub(crate) mode: &'static str,
    pub(crate) actions: Vec<&'static str>,
    pub(crate) choices: ChoicesView,
}

impl Shown {
    /// What is different in `next`; its number and events are for the caller.
    pub(crate) fn delta_to(&self, next: &Self) -> Delta {
        let (old, new) = (self, next);
        let workers = new.workers.values();
        let workers = workers.filter(|worker| old.workers.get(&worker.number) != Some(*worker));
        let removed = old.workers.keys();
        let removed = removed.filter(|number| !new.workers.contains_key(number));
        let (was, is) = (&old.partitions, &new.partitions);
        let is_other = was.names != is.names || was.weights != is.weights;
        let changed = (0..is.names.len()).filter(|&index| {
            is_other
                || was.owners[index] != is.owners[index]
                || was.tokens[index] != is.tokens[index]
                || was.marks[index] != is.marks[index]
        });
        let partition = |index: usize| {
            let token = is.tokens[index].clone();
            (index, is.owners[index], token, is.marks[index])
        };
        let timeless = ClockView {
            now_ms: old.clock.now_ms,
            ..new.clock.clone()
        };
        let changes = |is_changed: bool| is_changed.then_some(());
        Delta {
            sequence: 0,
            now_ms: new.clock.now_ms,
            clock: changes(timeless != old.clock).map(|()| new.clock.clone()),
            store: changes(new.store != old.store).map(|()| new.store.clone()),
            settings: changes(new.settings != old.settings).map(|()| new.settings.clone()),
            workers: workers.cloned().collect(),
            removed: removed.copied().collect(),
            partitions: changed.map(partition).collect(),
            names: changes(is_other).map(|()| is.names.clone()),
            weights: changes(is_other).and_then(|()| is.weights.clone()),
            summary: changes(new.summary != old.summary).map(|()| new.summary.clone()),
            point: new.point.clone().filter(|_| new.point != old.point),
            invariants: changes(new.invariants != old.invariants).map(|()| new.invariants.clone()),
            scenario: new
                .scenario
                .clone()
                .filter(|_| new.scenario != old.scenario),
            events: Vec::new(),
        }
    }

    /// Everything, with what it belongs to.
    pub(crate) fn snapshot(self, sequence: u64, origin: Origin, history: Vec<Point>) -> Snapshot {
        Snapshot {
            api: API,
            sequence,
            run: origin.run,
            source: origin.source,
            mode: origin.mode,
            actions: origin.actions,
            clock: self.clock,
            settings: self.settings,
            choices: origin.choices,
            store: self.store,
            workers: self.workers.into_values().collect(),
            partitions: self.partitions,
            summary: self.summary,
            invariants: self.invariants,
            scenario: self.scenario,
            history,
        }
    }
}

impl Delta {
    /// Whether there is anything in it that followers do not know.
    pub(crate) fn is_news(&self, before: &Shown) -> bool {
        self.now_ms != before.clock.now_ms
            || self.clock.is_some()
            || self.store.is_some()
            || self.settings.is_some()
            || !self.workers.is_empty()
            || !self.removed.is_empty()
            || !self.partitions.is_empty()
            || self.names.is_some()
            || self.summary.is_some()
            || self.scenario.is_some()
            || self.invariants.is_some()
            || !self.events.is_empty()
    }
}
