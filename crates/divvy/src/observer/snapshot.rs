//! What is seen of a cluster at one time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use divvy_core::Control;
use divvy_core::store::Token;
use serde::Serialize;

use super::mode::Mode;

/// A cluster as it is seen at one time. What is read one after another may not
/// be of one instant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    /// How its members coordinate.
    pub mode: Mode,
    /// The store, for people.
    pub store: String,
    /// The newest assignment, in leader mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How far the cluster has come, in leader mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<&'static str>,
    /// Whether the store has forgotten something, and nothing is granted until
    /// everyone is known to have stopped. In lease mode: whether it has just
    /// started, and grants nothing until leases that it may have forgotten have
    /// run out.
    pub quarantine: bool,
    /// The workers, in order of their names.
    pub workers: Vec<WorkerStatus>,
    /// The partitions, in their order.
    pub partitions: Vec<PartitionStatus>,
    /// What operators wish, also of workers that are not here.
    #[serde(serialize_with = "wished")]
    pub wishes: Control,
    /// What could not be read, or contradicts itself.
    pub problems: Vec<String>,
    /// How long the store took to answer all of this.
    #[serde(serialize_with = "milliseconds", rename = "took_ms")]
    pub took: Duration,
}

/// What is known of a worker's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkerLife {
    /// It renews its lease.
    Live,
    /// Its record says that it lives, and it was not looked at for long enough
    /// to see whether that is so.
    Unknown,
    /// Its record says that it lives, and was not renewed for longer than its
    /// lease.
    Silent,
    /// It was silent, and is over.
    Fenced,
    /// It left, and is expected back.
    Away,
    /// It left.
    Left,
}

impl WorkerLife {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Unknown => "unknown",
            Self::Silent => "silent",
            Self::Fenced => "fenced",
            Self::Away => "away",
            Self::Left => "left",
        }
    }

    /// Whether it takes part, as far as is known.
    pub const fn is_here(self) -> bool {
        matches!(self, Self::Live | Self::Unknown)
    }
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerStatus {
    /// Its id.
    pub name: String,
    /// Whether it is alive.
    pub life: WorkerLife,
    /// Whether it says that it may own partitions.
    pub healthy: bool,
    /// Its capacity in relation to the others.
    pub weight: f64,
    /// Its zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Which instance it is, in leader mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Whether it leads.
    pub leads: bool,
    /// Whether operators wish that it takes nothing more.
    pub cordoned: bool,
    /// Whether operators wish that it gives up everything.
    pub drained: bool,
    /// How many partitions are its own.
    pub owned: usize,
    /// How long it may work on without a renewal, in leader mode.
    #[serde(skip)]
    pub lease: Option<Duration>,
    /// How long ago it was last seen to renew that, in leader mode; nothing if
    /// it was not seen to.
    #[serde(skip)]
    pub renewed: Option<Duration>,
    /// The groups that it serves, in lease mode; nothing is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serves: Option<Vec<String>>,
    /// How many partitions it owns at most, in lease mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_partitions: Option<u32>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionStatus {
    /// Its text form.
    pub name: String,
    /// Its owner, or who has to give it back.
    pub owner: Option<String>,
    /// The token that it was granted with.
    #[serde(serialize_with = "digits", skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Whether its owner was asked to give it back.
    pub asked_back: bool,
    /// Whether its owner is gone, or away: nobody works on it.
    pub orphaned: bool,
    /// Whether its owner is no worker of this cluster, in lease mode: leases of
    /// one name are shared by all clusters of a store. Its owner is then told
    /// as `cluster:name`.
    pub foreign: bool,
    /// How long its lease runs unless it is renewed, in lease mode.
    #[serde(
        serialize_with = "left_milliseconds",
        rename = "lease_left_ms",
        skip_serializing_if = "Option::is_none"
    )]
    pub lease_left: Option<Duration>,
    /// Who should own it, in lease mode; nothing where nobody could, or its
    /// owner is cordoned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// Why it is not where it should be, in lease mode, as far as the store
    /// shows it: `cap`, where nobody owns it and all who could have as many as
    /// they may, or `quarantine`; and where another owns it, what lets that one
    /// keep it: `min_runtime`, `cooldown`, `pace` or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misaligned: Option<&'static str>,
    /// What it weighs in relation to the others.
    #[serde(skip)]
    pub weight: f64,
    /// To whom operators have pinned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
}

impl Snapshot {
    /// The worker with this name.
    pub fn worker(&self, name: &str) -> Option<&WorkerStatus> {
        let found = self
            .workers
            .binary_search_by(|worker| worker.name.as_str().cmp(name));
        found.ok().map(|index| &self.workers[index])
    }

    /// The partition with this text form.
    pub fn partition(&self, name: &str) -> Option<&PartitionStatus> {
        self.partitions
            .iter()
            .find(|partition| partition.name == name)
    }

    /// Sorts workers, and counts what each owns.
    pub(super) fn counted(mut self) -> Self {
        self.workers.sort_by(|a, b| a.name.cmp(&b.name));
        let mut owned = BTreeMap::new();
        for owner in self.partitions.iter().filter_map(|p| p.owner.as_deref()) {
            *owned.entry(owner).or_insert(0) += 1;
        }
        for worker in &mut self.workers {
            worker.owned = owned.get(worker.name.as_str()).copied().unwrap_or(0);
        }
        let here = self.workers.iter().filter(|worker| worker.life.is_here());
        let here: BTreeSet<&str> = here.map(|w| w.name.as_str()).collect();
        for partition in &mut self.partitions {
            let owner = partition.owner.as_deref();
            let is_gone = owner.is_some_and(|owner| !here.contains(owner));
            partition.orphaned = is_gone && !partition.foreign;
        }
        self
    }
}

#[derive(Serialize)]
struct Wished<'a> {
    cordoned: &'a BTreeSet<String>,
    drained: &'a BTreeSet<String>,
    pinned: &'a BTreeMap<String, String>,
}

fn wished<S: serde::Serializer>(control: &Control, to: S) -> Result<S::Ok, S::Error> {
    let wished = Wished {
        cordoned: &control.cordoned,
        drained: &control.drained,
        pinned: &control.pinned,
    };
    wished.serialize(to)
}

fn milliseconds<S: serde::Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(span.as_secs_f64() * 1000.0)
}

fn left_milliseconds<S: serde::Serializer>(
    span: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_u64(span.unwrap_or_default().as_millis() as u64)
}

/// Digits, for JavaScript would round a number.
fn digits<S: serde::Serializer>(token: &Option<Token>, to: S) -> Result<S::Ok, S::Error> {
    match token {
        Some(token) => to.collect_str(token),
        None => to.serialize_none(),
    }
}
