//! An assignment as JSON: what `divvy assign --json` prints and what is read
//! back as the previous assignment.

mod bounded;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::{Assignment, Balance, Move, Moves};
use crate::error::{Error, Invalid};
use crate::partition::{PARTITION_WEIGHT_DEFAULT, Partition, Partitions};
use crate::strategy::StrategyOptions;
use crate::worker::{Health, WORKER_WEIGHT_DEFAULT, Worker, Workers};

/// Version of the JSON form. A reader refuses any other.
pub const ASSIGNMENT_FORMAT: u32 = 1;

/// The JSON form of an [`Assignment`].
///
/// Reading needs `format` and `assignments`, or no more than a map from workers
/// to their partitions; a worker that `workers` does not describe has weight 1. What can be derived (counts, loads, balance, moves)
/// is written for people and not used when read.
///
/// ```
/// use divvy_core::{AssignmentDocument, Assignment};
///
/// let document: AssignmentDocument = AssignmentDocument::from_json(
///     r#"{"format": 1, "assignments": {"a": ["default:0"], "b": []}}"#,
/// )?;
/// let assignment: Assignment = document.assignment()?;
/// assert_eq!(assignment.owner_of("default:0").unwrap().id(), "a");
///
/// // What another system tells is enough.
/// let told = AssignmentDocument::from_json(r#"{"a": ["default:0"], "b": []}"#)?;
/// assert_eq!(told.assignment()?, assignment);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssignmentDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strategy: Option<String>,
    /// What the strategy was given beyond its name.
    #[serde(default, skip_serializing_if = "StrategyOptions::is_empty")]
    options: StrategyOptions,
    #[serde(default, deserialize_with = "bounded::workers")]
    workers: Vec<WorkerLoad>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "ignored"
    )]
    balance: Option<Balance>,
    /// What has to move to get here from the assignment it was compared to.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "ignored"
    )]
    moves: Option<Vec<Move>>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "ignored"
    )]
    affinity: Option<f64>,
    /// What partitions without a weight of their own count for, where that is
    /// not 1.
    #[serde(default = "unit_weight", skip_serializing_if = "is_unit_weight")]
    default_weight: u64,
    /// Weights of the partitions that have one of their own.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "bounded::weights"
    )]
    partition_weights: BTreeMap<String, i64>,
    #[serde(deserialize_with = "bounded::assignments")]
    assignments: BTreeMap<String, Vec<String>>,
}

/// One worker of an [`AssignmentDocument`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerLoad {
    /// The worker's id.
    pub id: String,
    /// Its weight.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// Its zone, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Its health, where it is not healthy.
    #[serde(default, skip_serializing_if = "is_healthy")]
    pub health: Health,
    /// The most partitions that it may own, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_partitions: Option<NonZeroU32>,
    /// How many partitions it has.
    #[serde(default)]
    pub partitions: usize,
    /// The sum of their loads.
    #[serde(default)]
    pub load: u64,
}

impl AssignmentDocument {
    /// The JSON form of `assignment`, made by the strategy of this name.
    pub fn new(strategy: &str, assignment: &Assignment) -> Self {
        Self {
            format: Some(ASSIGNMENT_FORMAT),
            strategy: Some(strategy.to_owned()),
            balance: Some(assignment.balance()),
            ..Self::of(assignment)
        }
    }

    /// The part of the JSON form that an assignment cannot do without.
    pub(crate) fn of(assignment: &Assignment) -> Self {
        let weighted = assignment.partitions().iter().filter(|p| p.weight() != 0);
        let assignments = assignment
            .by_worker()
            .into_iter()
            .map(|(worker, owned)| {
                let names = owned.iter().map(|p| p.as_str().to_owned()).collect();
                (worker.id().to_owned(), names)
            })
            .collect();
        Self {
            format: None,
            strategy: None,
            options: StrategyOptions::default(),
            workers: WorkerLoad::of(assignment),
            balance: None,
            default_weight: assignment.partitions().default_weight(),
            moves: None,
            affinity: None,
            partition_weights: weighted
                .map(|p| (p.as_str().to_owned(), p.weight()))
                .collect(),
            assignments,
        }
    }

    /// The same with the options that the strategy was given, of which those
    /// that are not the default ones are kept.
    pub fn with_options(self, options: &StrategyOptions) -> Self {
        Self {
            options: options.unusual(),
            ..self
        }
    }

    /// The same with what has to move to get here.
    pub fn with_moves(self, moves: &Moves) -> Self {
        Self {
            moves: Some(moves.iter().cloned().collect()),
            affinity: Some(moves.affinity()),
            ..self
        }
    }

    /// Reads the JSON form and checks its format version. Names and weights
    /// are checked by [`AssignmentDocument::assignment`].
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let read = |error: serde_json::Error| Error::document("assignment JSON", error);
        // The version first: another format may have any other shape.
        let envelope: Envelope = serde_json::from_str(json).map_err(read)?;
        let Some(format) = envelope.format.filter(|format| !format.is_array()) else {
            return Self::from_map(json);
        };
        if format != ASSIGNMENT_FORMAT {
            let rule = format!("this release reads format {ASSIGNMENT_FORMAT}");
            return Err(Invalid::new("assignment format", format, rule).into());
        }
        if envelope.after.is_some() {
            let plan: Plan = serde_json::from_str(json).map_err(read)?;
            let (strategy, options) = (plan.strategy, plan.options);
            return Ok(Self {
                strategy,
                options,
                ..plan.after.into()
            });
        }
        serde_json::from_str(json).map_err(read)
    }

    /// What other systems tell of themselves: workers and their partitions.
    fn from_map(json: &str) -> Result<Self, Error> {
        const FORM: &str = "assignment JSON without `format`, as {worker: [partition, ...]}";
        let read = |error| Error::document(FORM, error);
        let Owned(assignments) = serde_json::from_str(json).map_err(read)?;
        Ok(Self {
            format: None,
            strategy: None,
            options: StrategyOptions::default(),
            workers: Vec::new(),
            balance: None,
            default_weight: unit_weight(),
            moves: None,
            affinity: None,
            partition_weights: BTreeMap::new(),
            assignments,
        })
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("strings, finite numbers and string-keyed maps always serialise")
    }

    /// The strategy that made it, where that is known.
    pub fn strategy(&self) -> Option<&str> {
        self.strategy.as_deref()
    }

    /// The options that the strategy was given.
    pub fn options(&self) -> &StrategyOptions {
        &self.options
    }

    /// The workers with their counts and loads, as written.
    pub fn workers(&self) -> &[WorkerLoad] {
        &self.workers
    }

    /// The assignment. Every name is checked, and a partition that has two
    /// owners is an error.
    pub fn assignment(&self) -> Result<Assignment, Error> {
        let mut described = Vec::with_capacity(self.workers.len());
        for entry in &self.workers {
            let worker = Worker::new(entry.id.as_str())?
                .with_weight(entry.weight)?
                .with_max_partitions(entry.max_partitions)
                .with_health(entry.health);
            described.push(match &entry.zone {
                Some(zone) => worker.with_zone(zone.as_str())?,
                None => worker,
            });
        }
        let known = Workers::new(described.iter().cloned())?;
        for id in self.assignments.keys() {
            if known.index_of(id).is_none() {
                described.push(Worker::new(id.as_str())?);
            }
        }
        let workers = Workers::new(described)?;

        let mut owned: Vec<(Partition, u32)> = Vec::new();
        for (id, names) in &self.assignments {
            let owner = workers.index_of(id).expect("was added above") as u32;
            for name in names {
                let weight = self.partition_weights.get(name).copied().unwrap_or(0);
                owned.push((name.parse::<Partition>()?.with_weight(weight)?, owner));
            }
        }
        owned.sort_unstable();
        if let Some([(name, first), (_, second)]) =
            owned.array_windows().find(|[one, other]| one.0 == other.0)
        {
            let id = |owner: &u32| workers.as_slice()[*owner as usize].id();
            let rule = match (id(first), id(second)) {
                (one, other) if one == other => format!("is given twice to '{one}'"),
                (one, other) => format!("is given twice, to '{one}' and to '{other}'"),
            };
            return Err(Invalid::new("partition", name, rule).into());
        }
        let (partitions, owners): (Vec<_>, Vec<_>) = owned.into_iter().unzip();
        let partitions = Partitions::new(partitions)?.with_default_weight(self.default_weight)?;
        let stray = |name: &&String| partitions.index_of(name).is_none();
        if let Some(name) = self.partition_weights.keys().find(stray) {
            let rule = "has a weight but no owner";
            return Err(Invalid::new("partition", name, rule).into());
        }
        Assignment::new(&workers, &partitions, owners)
    }
}

impl WorkerLoad {
    /// The workers of an assignment, with what they own.
    pub(crate) fn of(assignment: &Assignment) -> Vec<Self> {
        let owned = assignment.counts().into_iter().zip(assignment.loads());
        let entry = |(worker, (partitions, load)): (&Worker, (usize, u64))| Self {
            id: worker.id().to_owned(),
            weight: worker.weight(),
            zone: worker.zone().map(str::to_owned),
            health: worker.health(),
            max_partitions: worker.max_partitions(),
            partitions,
            load,
        };
        assignment.workers().iter().zip(owned).map(entry).collect()
    }
}

/// What tells one document from another.
#[derive(Deserialize)]
struct Envelope {
    format: Option<serde_json::Value>,
    after: Option<de::IgnoredAny>,
}

/// A map from workers to their partitions, and nothing else.
#[derive(Deserialize)]
struct Owned(#[serde(deserialize_with = "bounded::assignments")] BTreeMap<String, Vec<String>>);

/// Of a plan, the assignment that it ends in.
#[derive(Deserialize)]
struct Plan {
    strategy: Option<String>,
    #[serde(default)]
    options: StrategyOptions,
    after: After,
}

#[derive(Deserialize)]
struct After {
    #[serde(deserialize_with = "bounded::workers")]
    workers: Vec<WorkerLoad>,
    #[serde(default = "unit_weight")]
    default_weight: u64,
    #[serde(default, deserialize_with = "bounded::weights")]
    partition_weights: BTreeMap<String, i64>,
    #[serde(deserialize_with = "bounded::assignments")]
    assignments: BTreeMap<String, Vec<String>>,
}

impl From<After> for AssignmentDocument {
    fn from(after: After) -> Self {
        Self {
            format: Some(ASSIGNMENT_FORMAT),
            strategy: None,
            options: StrategyOptions::default(),
            workers: after.workers,
            balance: None,
            default_weight: after.default_weight,
            moves: None,
            affinity: None,
            partition_weights: after.partition_weights,
            assignments: after.assignments,
        }
    }
}

fn default_weight() -> f64 {
    WORKER_WEIGHT_DEFAULT
}

fn unit_weight() -> u64 {
    PARTITION_WEIGHT_DEFAULT
}

fn is_unit_weight(weight: &u64) -> bool {
    *weight == PARTITION_WEIGHT_DEFAULT
}

fn is_healthy(health: &Health) -> bool {
    *health == Health::Healthy
}

/// Takes any value for a derived field, which is computed anew instead.
fn ignored<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<Option<T>, D::Error> {
    de::IgnoredAny::deserialize(deserializer).map(|_| None)
}
