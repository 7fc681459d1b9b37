//! What is told over HTTP: `docs/playground.md` describes each of these. What is
//! not known of a live cluster is nothing.

use serde::Serialize;

/// The version of the interface.
pub const API: u32 = 1;

/// A worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerView {
    /// Its number, which no other ever has.
    pub number: usize,
    /// What its host is called.
    pub name: String,
    /// By which id placement knows it.
    pub id: Option<String>,
    /// What it is doing.
    pub state: &'static str,
    /// Whether it has a process.
    pub alive: bool,
    /// Whether it leads.
    pub leader: bool,
    /// Whether it may own partitions.
    pub health: &'static str,
    /// Its capacity in relation to the others.
    pub weight: f64,
    /// Its zone.
    pub zone: Option<String>,
    /// Whether its process stands still.
    pub paused: Option<bool>,
    /// What it cannot reach.
    pub isolated: Option<&'static str>,
    /// Whether its hooks are slow.
    pub slow: Option<bool>,
    /// Whether its start hooks fail.
    pub broken: Option<bool>,
    /// Whether it gets nothing more.
    pub cordoned: bool,
    /// Whether it gives everything back.
    pub draining: bool,
    /// How many partitions it has.
    pub owned: usize,
    /// What they weigh.
    pub load: f64,
    /// What its share would weigh.
    pub share: f64,
    /// How long it may work on without a renewal.
    pub lease_left_ms: Option<u64>,
    /// How long that is at most.
    pub lease_ms: Option<u64>,
}

impl WorkerView {
    /// Whether more than the lease clock is different.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let left = other.lease_left_ms;
        let same_clock = Self {
            lease_left_ms: left,
            ..self.clone()
        };
        same_clock != *other || self.lease_left_ms.is_some() != left.is_some()
    }
}

/// The clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockView {
    /// What it is now, from the world's beginning.
    pub now_ms: u64,
    /// Whether time passes.
    pub running: bool,
    /// How fast.
    pub speed: f64,
    /// Whether that is faster than it can be calculated here: the world is
    /// more than a second behind.
    pub lagging: bool,
    /// What the wall clock showed at the beginning, where time is real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_unix_ms: Option<u64>,
}

/// What holds for all workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingsView {
    /// The timings, by name.
    pub preset: Option<String>,
    /// Who places partitions.
    pub strategy: Option<&'static str>,
    /// Whether no partition ever has two owners.
    pub exclusive: Option<bool>,
    /// How long a lease is.
    pub lease_ms: Option<u64>,
    /// Where chance comes from.
    pub seed: Option<u64>,
}

/// What can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChoicesView {
    /// Presets of this mode.
    pub presets: Vec<&'static str>,
    /// Strategies of this mode.
    pub strategies: Vec<&'static str>,
    /// Modes.
    pub modes: Vec<&'static str>,
    /// Ways to be cut off.
    pub isolations: Vec<&'static str>,
}

/// The store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoreDocument {
    /// up, slow or down.
    pub state: &'static str,
    /// How long one way takes at most.
    pub latency_ms: Option<f64>,
    /// Which life it is in.
    pub incarnation: Option<String>,
    /// Why it does not answer, where it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// All partitions, by index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionsView {
    /// What they are called.
    pub names: Vec<String>,
    /// What they weigh, if not all the same.
    pub weights: Option<Vec<f64>>,
    /// The numbers of their owners; -1 is nobody.
    pub owners: Vec<i32>,
    /// The tokens they were granted with; empty where nobody has it.
    pub tokens: Vec<String>,
    /// What is the matter with them.
    pub marks: Vec<u8>,
}

/// The sums of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Partitions that somebody works on.
    pub owned: usize,
    /// All partitions.
    pub partitions: usize,
    /// Partitions that are being started or stopped.
    pub moving: usize,
    /// Partitions that are not where they should be.
    pub misplaced: Option<usize>,
    /// Partitions with two owners.
    pub two_owners: Option<usize>,
    /// Load of a worker, if all had the same.
    pub mean: f64,
    /// Load of the worker with the least.
    pub least: f64,
    /// Load of the worker with the most.
    pub most: f64,
    /// The most in relation to its share.
    pub imbalance: f64,
    /// Partitions that went from one worker to another, so far.
    pub moves: u64,
    /// Whether everything is where it should be.
    pub converged: bool,
    /// For how long.
    pub converged_for_ms: u64,
}

/// A point of the charts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// When.
    pub at_ms: u64,
    /// Partitions that somebody works on.
    pub owned: usize,
    /// Partitions that are being started or stopped.
    pub moving: usize,
    /// The most in relation to its share.
    pub imbalance: f64,
    /// Partitions that went from one worker to another, so far.
    pub moves: u64,
}

/// What was held against the invariants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InvariantsView {
    /// How many facts.
    pub checked: u64,
    /// What was broken.
    pub violations: Vec<Violation>,
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Violation {
    /// Its number.
    pub invariant: &'static str,
    /// What it says.
    pub property: &'static str,
    /// What was seen instead.
    pub seen: String,
    /// When.
    pub at_ms: u64,
    /// Where the trace is.
    pub trace: &'static str,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Its number, from 1 on.
    pub number: u64,
    /// When.
    pub at_ms: u64,
    /// Of which kind.
    pub kind: &'static str,
    /// Which worker.
    pub worker: Option<usize>,
    /// Which partition.
    pub partition: Option<String>,
    /// Who had it.
    pub from: Option<usize>,
    /// Who has it.
    pub to: Option<usize>,
    /// With which token.
    pub token: Option<String>,
    /// Why, in a word.
    pub cause: Option<&'static str>,
    /// All of it in a sentence.
    pub text: String,
}

/// How a scenario is doing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScenarioState {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What is to be reached.
    pub goal: String,
    /// running, passed or failed.
    pub state: &'static str,
    /// Why it failed, where no number says it.
    pub reason: Option<String>,
    /// From 0 to 1.
    pub progress: f64,
    /// How long it has been running.
    pub at_ms: u64,
    /// How long it takes.
    pub lasts_ms: u64,
    /// What is measured.
    pub numbers: Vec<Measured>,
}

/// A number that a goal is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// What was measured.
    pub measured: f64,
    /// What it may be.
    pub bound: f64,
    /// Whether it may be at most that, or must be at least that.
    pub rule: &'static str,
    /// Whether it is.
    pub met: bool,
}

/// Everything, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// The version of the interface.
    pub api: u32,
    /// Deltas with higher numbers come after it.
    pub sequence: u64,
    /// Another world has another one.
    pub run: String,
    /// Where it comes from.
    pub source: &'static str,
    /// Which kind of coordination.
    pub mode: &'static str,
    /// What can be done.
    pub actions: Vec<&'static str>,
    /// The clock.
    pub clock: ClockView,
    /// What holds for all workers.
    pub settings: SettingsView,
    /// What can be chosen.
    pub choices: ChoicesView,
    /// The store.
    pub store: StoreDocument,
    /// The workers.
    pub workers: Vec<WorkerView>,
    /// The partitions.
    pub partitions: PartitionsView,
    /// The sums of it.
    pub summary: Summary,
    /// What was held against the invariants.
    pub invariants: InvariantsView,
    /// The scenario that runs or ran last.
    pub scenario: Option<ScenarioState>,
    /// For the charts.
    pub history: Vec<Point>,
}

/// What changed since the delta before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delta {
    /// Its number.
    pub sequence: u64,
    /// What it is now.
    pub now_ms: u64,
    /// The clock, if more than the time changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockView>,
    /// The store, if it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreDocument>,
    /// The settings, if they changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsView>,
    /// Workers that changed, whole.
    pub workers: Vec<WorkerView>,
    /// Workers that are shown no longer.
    pub removed: Vec<usize>,
    /// Partitions that changed: index, owner, token and mark.
    pub partitions: Vec<(usize, i32, String, u8)>,
    /// The names of all, if there are others: all are in `partitions` then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// The weights of all, if they changed and are not all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
    /// The sums, if they changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// A new point for the charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
    /// The invariants, if more was held against them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invariants: Option<InvariantsView>,
    /// The scenario, if it went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioState>,
    /// What happened, the last of it.
    pub events: Vec<Event>,
}
