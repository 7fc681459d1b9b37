//! Why things are where they are, and what would become of them.

use std::collections::BTreeMap;

use divvy_sim::Mode;
use serde::Serialize;

use super::tell::words;
use super::{Engine, Refusal};
use crate::document::WorkerView;

/// Workers of a ranking that are told.
pub(crate) const RANKS_MAX: usize = 32;
/// Partitions of a worker that are told.
pub(crate) const NAMES_MAX: usize = 1000;
/// What one partition weighs by default, inside.
const WEIGHT: f64 = 100.0;

/// A partition, and why it is where it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionDocument {
    pub(crate) name: String,
    pub(crate) number: usize,
    pub(crate) weight: f64,
    pub(crate) owner: i32,
    pub(crate) token: Option<String>,
    pub(crate) mark: u8,
    pub(crate) pinned: bool,
    pub(crate) why: String,
    pub(crate) method: String,
    pub(crate) ranking: Vec<RankDocument>,
    pub(crate) owners: Vec<TenureDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RankDocument {
    pub(crate) worker: usize,
    pub(crate) name: String,
    pub(crate) hash: Option<String>,
    pub(crate) score: Option<f64>,
    pub(crate) weight: f64,
    pub(crate) eligible: bool,
    pub(crate) why_not: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TenureDocument {
    pub(crate) worker: usize,
    pub(crate) name: String,
    pub(crate) token: Option<String>,
    pub(crate) from_ms: u64,
    pub(crate) until_ms: Option<u64>,
    pub(crate) cause: Option<&'static str>,
    pub(crate) text: String,
}

/// A worker, and what is to be said of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerDocument {
    #[serde(flatten)]
    pub(crate) worker: WorkerView,
    pub(crate) partitions: Vec<String>,
    pub(crate) explain: String,
}

/// What the death of a worker would cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIf {
    /// Whose.
    pub worker: usize,
    /// What would go where.
    pub moves: Vec<MoveDocument>,
    /// How much each would get.
    pub by_worker: Vec<Gain>,
    /// Partitions that would stay.
    pub unchanged: usize,
    /// Within which all of it would run elsewhere.
    pub bound_ms: u64,
    /// What else is to be known.
    pub note: String,
}

/// A partition that would go to another worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MoveDocument {
    /// Which.
    pub partition: String,
    /// Who would get it; -1 is nobody.
    pub to: i32,
    /// What that is called.
    pub to_name: Option<String>,
}

/// What a worker would get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gain {
    worker: usize,
    name: String,
    gains: usize,
}

impl Gain {
    pub(crate) const fn new(worker: usize, name: String, gains: usize) -> Self {
        Self {
            worker,
            name,
            gains,
        }
    }
}

impl Engine {
    /// Why a partition is where it is.
    pub fn explain_partition(&mut self, name: &str) -> Result<PartitionDocument, Refusal> {
        let number = self.number_of(name)?;
        let places = self.places();
        let mark = self.marks(&places)[number];
        let world = &*self.world;
        let (ranks, method) = self
            .compass
            .rank(world, &places, &self.control, &self.gauge, number);
        let owner = self.gauge.owners[number];
        let desired = self
            .compass
            .desired(world, &places, &self.control, &self.gauge)[number];
        let named = |number: i32| {
            let place = usize::try_from(number).ok().and_then(|at| places.get(at));
            place.map_or("nobody", |place| place.name.as_str())
        };
        let why = match mark {
            0 if desired == owner || desired < 0 => format!("{} has it and should", named(owner)),
            0 => format!(
                "{} has it; by the strategy alone it would be with {}, which is not worth a move",
                named(owner),
                named(desired)
            ),
            mark => format!(
                "{} has it and {} should: {}",
                named(owner),
                named(desired),
                meaning(mark)
            ),
        };
        let ranking = ranks.into_iter().take(RANKS_MAX).map(|rank| RankDocument {
            worker: rank.worker,
            name: places[rank.worker].name.clone(),
            hash: rank.hash.map(|hash| match hash.starts_with("0x") {
                true => hash,
                false => format!("0x{hash}"),
            }),
            score: rank.score,
            weight: rank.weight,
            eligible: rank.why_not.is_none(),
            why_not: rank.why_not,
        });
        let owners = self.gauge.tenures(number).map(|tenure| TenureDocument {
            worker: tenure.worker,
            name: places[tenure.worker].name.clone(),
            token: Some(tenure.token.to_string()),
            from_ms: tenure.from_ms,
            until_ms: tenure.until_ms,
            cause: Some(tenure.cause),
            text: words(tenure.cause).to_owned(),
        });
        Ok(PartitionDocument {
            name: name.to_owned(),
            number,
            weight: world.weight_of(number) as f64 / WEIGHT,
            owner,
            token: self.gauge.tokens[number].map(|token| token.to_string()),
            mark,
            pinned: self.control.pinned.contains_key(name),
            why,
            method,
            ranking: ranking.collect(),
            owners: owners.collect(),
        })
    }

    /// A worker, with what it has.
    pub fn explain_worker(&self, number: usize) -> Result<WorkerDocument, Refusal> {
        let place = self.place(number)?;
        let places = self.places();
        let (loads, _) = self.loads(&places);
        let worker = self.worker_view(number, &place, &loads);
        let owned = self.gauge.owners.iter().enumerate();
        let owned = owned.filter(|(_, owner)| **owner == number as i32);
        let names = owned.map(|(partition, _)| self.world.name_of(partition));
        let explain = match (&worker, worker.alive) {
            (_, false) => format!("{} is gone", worker.name),
            (worker, true) if worker.paused == Some(true) => format!(
                "{} stands still: its lease runs out, and others get what it has",
                worker.name
            ),
            (worker, true) if worker.isolated.is_some() => format!(
                "{} is cut off: it stops before its lease ends, and others get what it has",
                worker.name
            ),
            (worker, true) if worker.draining => {
                format!("{} is drained and gets nothing", worker.name)
            }
            (worker, true) if worker.share == 0.0 => {
                format!("{} may have nothing as it is", worker.name)
            }
            (worker, true) => format!(
                "{} has {} partitions that weigh {}; its share is {}",
                worker.name, worker.owned, worker.load, worker.share
            ),
        };
        Ok(WorkerDocument {
            partitions: names.take(NAMES_MAX).collect(),
            explain,
            worker,
        })
    }

    /// What the death of a worker would cause. Nothing is changed.
    pub fn what_if(&self, number: usize) -> Result<WhatIf, Refusal> {
        let place = self.place(number)?;
        if !place.is_alive() {
            let text = format!("{} is gone already", place.name);
            return Err(Refusal::Conflict(text));
        }
        let places = self.places();
        let world = &*self.world;
        let (control, gauge) = (&self.control, &self.gauge);
        let after = self
            .compass
            .ask(world, &places, control, gauge, Some(number));
        let mut gains: BTreeMap<usize, usize> = BTreeMap::new();
        let mut moves = Vec::new();
        for (partition, (&owner, &to)) in gauge.owners.iter().zip(&after).enumerate() {
            // What is on its way already would be so without that death.
            let is_its = owner == number as i32;
            if !is_its && (self.setup.mode == Mode::Lease || owner == to || owner < 0) {
                continue;
            }
            let to_place = usize::try_from(to).ok();
            if let Some(to) = to_place {
                *gains.entry(to).or_default() += 1;
            }
            moves.push(MoveDocument {
                partition: world.name_of(partition),
                to,
                to_name: to_place.map(|to| places[to].name.clone()),
            });
        }
        let by_worker = gains.into_iter().map(|(worker, gains)| Gain {
            worker,
            name: places[worker].name.clone(),
            gains,
        });
        let bound_ms = world.handed_on_within().as_millis() as u64;
        Ok(WhatIf {
            worker: number,
            unchanged: gauge.owners.len() - moves.len(),
            by_worker: by_worker.collect(),
            note: "by the same strategy, and nothing has been changed".to_owned(),
            moves,
            bound_ms,
        })
    }
}

/// A mark in words.
const fn meaning(mark: u8) -> &'static str {
    match mark {
        1 => "it is on its way",
        2 => "it was moved a short while ago, and waits",
        3 => "it has not run long enough to be moved",
        4 => "there is no room for it there",
        5 => "its owner is cut off or stands still",
        6 => "something failed, and is tried again after a pause",
        8 => "nobody has it",
        9 => "two have it at once",
        10 => "the leader waits for other changes before it moves anything",
        _ => "it is held by another than the best",
    }
}
