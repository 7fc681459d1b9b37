//! Why things are where they are, and what would become of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use divvy_sim::{Mode, Place, PlaceState};
use serde::Serialize;

use super::tell::words;
use super::{Engine, Refusal};
use crate::document::WorkerView;
use crate::gauge::Gauge;

/// Workers of a ranking that are told.
pub(crate) const RANKS_MAX: usize = 32;
/// Partitions of a worker that are told.
const NAMES_MAX: usize = 1000;
/// How long may be calculated to see what would become of a world.
const FORESIGHT: Duration = Duration::from_millis(1500);
/// What one partition weighs by default, inside.
const WEIGHT: f64 = 100.0;

/// A partition, and why it is where it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionDocument {
    pub(crate) name: String,
    pub(crate) number: usize,
    pub(crate) weight: f64,
    pub(crate) owner: i32,
    /// Who works on it beside its owner.
    pub(crate) also: Vec<usize>,
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
    worker: WorkerView,
    partitions: Vec<String>,
    explain: String,
}

impl WorkerDocument {
    /// A worker with these partitions, and why it has them.
    pub(crate) fn new(
        worker: WorkerView,
        partitions: impl Iterator<Item = String>,
        explain: String,
    ) -> Self {
        Self {
            worker,
            partitions: partitions.take(NAMES_MAX).collect(),
            explain,
        }
    }
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
        let also = self.gauge.also.get(&number).cloned().unwrap_or_default();
        let why = why(&places, (owner, &also), desired, mark);
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
            also,
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
        let has = |partition: usize, owner: i32| {
            let also = self.gauge.also.get(&partition);
            owner == number as i32 || also.is_some_and(|also| also.contains(&number))
        };
        let owned = owned.filter(|(partition, owner)| has(*partition, **owner));
        let names = owned.map(|(partition, _)| self.world.name_of(partition));
        let explain = match (&worker, worker.alive) {
            (_, false) => format!("{} is gone", worker.name),
            (worker, true) if worker.paused == Some(true) => format!(
                "{} stands still: its lease runs out, and others get what it has",
                worker.name
            ),
            (worker, true) if worker.isolated.is_some() && !self.setup.exclusive => format!(
                "{} is cut off: it works on until it hears that its session is over, beside \
                 others that get what it has when its lease ends",
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
        Ok(WorkerDocument::new(worker, names, explain))
    }

    /// Who would have what if a worker died: what becomes of a copy of this
    /// world, by whatever its members decide. Nothing where there is none, or
    /// it takes too long.
    fn foretell(&self, number: usize) -> Option<Vec<i32>> {
        let mut fork = self.world.fork()?;
        fork.crash(number).ok()?;
        let (cooldown, window) = fork.pace();
        let span = fork.handed_on_within() * 2 + cooldown + window * 2;
        let by = Instant::now() + FORESIGHT;
        let is_done = fork.go_on_while(fork.time() + span, &mut || Instant::now() < by);
        let mut gauge = Gauge::default();
        gauge.look(&*fork, 0);
        is_done.ok()?.then_some(gauge.owners)
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
        let foretold = self.foretell(number);
        let is_foretold = foretold.is_some();
        let after = foretold.unwrap_or_else(|| {
            self.compass
                .ask(world, &places, control, gauge, Some(number))
        });
        let mut gains: BTreeMap<usize, usize> = BTreeMap::new();
        let mut moves = Vec::new();
        for (partition, (&owner, &to)) in gauge.owners.iter().zip(&after).enumerate() {
            let is_its = owner == number as i32;
            // What others have moves only where that was seen to happen.
            let is_seen = is_foretold && owner >= 0 && to >= 0 && owner != to;
            if !is_its && !is_seen {
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
            note: match (is_foretold, self.setup.mode) {
                (true, _) => {
                    "seen in a copy of this world that went on without it; nothing has \
                              been changed"
                }
                (false, Mode::Lease) => {
                    "by the ranking that all workers come to; nothing has \
                                         been changed"
                }
                (false, Mode::Leader) => {
                    "by the same strategy; whether more would move was not \
                                          calculated, for that takes too long here"
                }
            }
            .to_owned(),
            moves,
            bound_ms,
        })
    }
}

/// Why a partition is with whom it is.
fn why(places: &[Place], (owner, also): (i32, &[usize]), desired: i32, mark: u8) -> String {
    let named = |number: i32| {
        let place = usize::try_from(number).ok().and_then(|at| places.get(at));
        place.map(|place| place.name.as_str())
    };
    let Some(has) = named(owner) else {
        let has_joined =
            |place: &Place| !matches!(place.state, PlaceState::Gone | PlaceState::Joining);
        return match named(desired) {
            _ if !places.iter().any(has_joined) => {
                "nobody has it: no worker has joined yet".to_owned()
            }
            Some(should) => format!("nobody has it and {should} should: {}", meaning(mark)),
            None => "nobody has it: nobody who is there may have it".to_owned(),
        };
    };
    let others: Vec<&str> = also
        .iter()
        .map(|&number| places[number].name.as_str())
        .collect();
    if !others.is_empty() {
        return format!(
            "{has} has it, and {} still works on it: two have it at once",
            others.join(", ")
        );
    }
    match (mark, named(desired)) {
        (0, Some(should)) if should != has => format!(
            "{has} has it; by the strategy alone it would be with {should}, which is not worth a move"
        ),
        (0, _) => format!("{has} has it and should"),
        (mark, should) => format!(
            "{has} has it and {} should: {}",
            should.unwrap_or("nobody"),
            meaning(mark)
        ),
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
        8 => "it is about to start there",
        9 => "two have it at once",
        10 => "the leader waits for other changes before it moves anything",
        _ => "it is held by another than the best",
    }
}
