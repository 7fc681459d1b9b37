//! Where everything should be: asked of the same strategies that decide it,
//! over what there is.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use divvy_core::lease::Outlook;
use divvy_core::store::LeaseKey;
use divvy_core::{
    Assignment, Control, Explanation, Health, Partition, Partitions, Rendezvous, Scheme, Strategy,
    StrategyName, StrategySettings, Worker, Workers,
};
use divvy_sim::{Hands, Mode, Place, PlaceState};

use crate::gauge::Gauge;

/// Where everything should be.
#[derive(Debug)]
pub(crate) struct Compass {
    strategy: Box<dyn Strategy>,
    /// All partitions, and the number of each in their order.
    partitions: Partitions,
    numbers: Vec<usize>,
    /// By partition, the worker that should have it; -1 is nobody.
    desired: Vec<i32>,
    /// What that was found for.
    found_for: Option<u64>,
}

/// A worker's rank for a partition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rank {
    pub(crate) worker: usize,
    pub(crate) hash: Option<String>,
    pub(crate) score: Option<f64>,
    pub(crate) weight: f64,
    pub(crate) why_not: Option<String>,
}

/// What a strategy of leader mode is asked.
struct Question {
    workers: Workers,
    /// The place of each of them.
    by_id: BTreeMap<String, usize>,
    partitions: Partitions,
    previous: Option<Assignment>,
    /// By partition, whose it is whatever the strategy says.
    fixed: Vec<Option<i32>>,
}

impl Compass {
    pub(crate) fn new(strategy: StrategyName, world: &dyn Hands) -> Self {
        let strategy = StrategySettings::new(strategy).build();
        let mut compass = Self {
            strategy: strategy.expect("defaults of built-in strategies are valid"),
            partitions: world.list(),
            numbers: Vec::new(),
            desired: Vec::new(),
            found_for: None,
        };
        compass.relist(world);
        compass
    }

    /// The partitions, or their weights, are others.
    pub(crate) fn relist(&mut self, world: &dyn Hands) {
        self.partitions = world.list();
        self.numbers = self.partitions.iter().map(number_of).collect();
        self.found_for = None;
    }

    /// Where everything should be. Asked again only where something that
    /// matters has changed.
    pub(crate) fn desired(
        &mut self,
        world: &dyn Hands,
        places: &[Place],
        control: &Control,
        gauge: &Gauge,
    ) -> &[i32] {
        let key = fingerprint(world.mode(), places, control, gauge);
        if self.found_for != Some(key) {
            self.desired = self.ask(world, places, control, gauge, None);
            self.found_for = Some(key);
        }
        &self.desired
    }

    /// Where everything should be if one worker was not there.
    pub(crate) fn ask(
        &self,
        world: &dyn Hands,
        places: &[Place],
        control: &Control,
        gauge: &Gauge,
        without: Option<usize>,
    ) -> Vec<i32> {
        match world.mode() {
            Mode::Leader => self.ask_strategy(places, control, gauge, without),
            Mode::Lease => ask_outlook(world, places, without),
        }
    }

    fn ask_strategy(
        &self,
        places: &[Place],
        control: &Control,
        gauge: &Gauge,
        without: Option<usize>,
    ) -> Vec<i32> {
        let question = self.question(places, control, gauge, without);
        let mut desired: Vec<i32> = question.fixed.iter().map(|at| at.unwrap_or(-1)).collect();
        let previous = question.previous.as_ref();
        let answer = self
            .strategy
            .assign(&question.workers, &question.partitions, previous);
        let Ok(answer) = answer else {
            return desired;
        };
        let places: Vec<i32> = answer
            .workers()
            .iter()
            .map(|worker| question.by_id[worker.id()] as i32)
            .collect();
        let owners = answer.partitions().iter().zip(answer.owners());
        for (partition, owner) in owners {
            if let Some(at) = desired.get_mut(number_of(partition)) {
                *at = places[*owner as usize];
            }
        }
        desired
    }

    /// What the leader would ask its strategy: cordoned workers keep what they
    /// have, drained ones do not, and what is pinned is not asked about.
    fn question(
        &self,
        places: &[Place],
        control: &Control,
        gauge: &Gauge,
        without: Option<usize>,
    ) -> Question {
        let here = places.iter().enumerate().filter(|(_, place)| counts(place));
        let here: Vec<(usize, &Place, &str)> = here
            .filter_map(|(number, place)| Some((number, place, place.id.as_deref()?)))
            .collect();
        let by_id: BTreeMap<String, usize> = here
            .iter()
            .map(|(number, _, id)| ((*id).to_owned(), *number))
            .collect();
        let may_keep = |(number, place, id): &(usize, &Place, &str)| {
            Some(*number) != without
                && place.health == Health::Healthy
                && place.weight > 0.0
                && !control.drained.contains(*id)
        };
        let keeps: Vec<_> = here.iter().filter(|one| may_keep(one)).collect();
        let eligible = keeps
            .iter()
            .filter(|(_, _, id)| !control.cordoned.contains(*id));
        let workers = eligible.map(|(_, place, id)| worker(id, place));
        let workers = Workers::new(workers).expect("ids are names, and differ");
        let cordoned = |owner: i32| {
            let mut keeps = keeps.iter();
            keeps.any(|(number, _, id)| *number as i32 == owner && control.cordoned.contains(*id))
        };
        let has_cordoned = keeps.len() > workers.len();
        let mut fixed = vec![None; gauge.owners.len()];
        if has_cordoned {
            for (at, &owner) in fixed.iter_mut().zip(&gauge.owners) {
                *at = (owner >= 0 && cordoned(owner)).then_some(owner);
            }
        }
        for (partition, id) in &control.pinned {
            let (Some(index), Some(&number)) = (
                self.partitions.index_of(partition),
                by_id.get(id).filter(|number| Some(**number) != without),
            ) else {
                continue;
            };
            if let Some(at) = fixed.get_mut(self.numbers[index]) {
                *at = Some(number as i32);
            }
        }
        let is_open = |partition: &&Partition| {
            let number = number_of(partition);
            fixed.get(number).is_some_and(Option::is_none)
        };
        let is_whole = fixed.len() == self.partitions.len() && fixed.iter().all(Option::is_none);
        let partitions = match is_whole {
            true => self.partitions.clone(),
            false => {
                let open = self.partitions.iter().filter(is_open).cloned();
                Partitions::new(open).expect("some of valid partitions")
            }
        };
        let previous = previous(&here, &partitions, gauge);
        Question {
            workers,
            by_id,
            partitions,
            previous,
            fixed,
        }
    }

    /// How workers rank for a partition, the best first, and how that comes
    /// about.
    pub(crate) fn rank(
        &self,
        world: &dyn Hands,
        places: &[Place],
        control: &Control,
        gauge: &Gauge,
        partition: usize,
    ) -> (Vec<Rank>, String) {
        let name = world.name_of(partition);
        if world.mode() == Mode::Lease {
            return rank_by_outlook(world, places, gauge, partition);
        }
        let question = self.question(places, control, gauge, None);
        if let Some(pinned) = question.fixed.get(partition).copied().flatten() {
            let text = match control.pinned.contains_key(&name) {
                true => "An operator pinned it.",
                false => "Its worker is cordoned and keeps what it has.",
            };
            let rank = Rank {
                worker: pinned as usize,
                hash: None,
                score: None,
                weight: places[pinned as usize].weight,
                why_not: None,
            };
            return (vec![rank], text.to_owned());
        }
        let previous = question.previous.as_ref();
        let explained =
            self.strategy
                .explain(&name, &question.workers, &question.partitions, previous);
        match explained {
            Ok(explanation) => {
                let Explanation {
                    ranking,
                    why,
                    method,
                    ..
                } = explanation;
                let method = match why {
                    Some(why) => format!("{why} {method}"),
                    None => method,
                };
                let ranks = ranking.into_iter().filter_map(|ranked| {
                    Some(Rank {
                        worker: *question.by_id.get(&ranked.worker)?,
                        hash: ranked.hash,
                        score: ranked.score,
                        weight: ranked.weight,
                        why_not: ranked.veto.map(|veto| veto.to_string()),
                    })
                });
                (ranks.collect(), method)
            }
            Err(error) => (Vec::new(), format!("Nobody is ranked: {error}.")),
        }
    }
}

/// Whether a worker takes part: it has a name, and has not lost its lease.
pub(crate) fn counts(place: &Place) -> bool {
    let is_here = !matches!(place.state, PlaceState::Gone | PlaceState::Stopping);
    is_here && place.id.is_some() && !place.is_lapsed
}

/// The number of a partition, which is the last part of its name.
fn number_of(partition: &Partition) -> usize {
    let number = partition
        .segments()
        .last()
        .and_then(|last| last.parse().ok());
    number.expect("partitions of a world are numbered")
}

fn worker(id: &str, place: &Place) -> Worker {
    let worker = Worker::new(id).and_then(|worker| worker.with_weight(place.weight));
    let worker = worker.expect("actions check weights");
    let worker = worker.with_health(place.health);
    match &place.zone {
        Some(zone) => {
            let zoned = worker.with_zone(zone.as_str());
            zoned.expect("actions check zones")
        }
        None => worker,
    }
}

/// The assignment in force, of those partitions that somebody has.
fn previous(
    here: &[(usize, &Place, &str)],
    partitions: &Partitions,
    gauge: &Gauge,
) -> Option<Assignment> {
    let workers = here.iter().map(|(_, place, id)| worker(id, place));
    let workers = Workers::new(workers).ok()?;
    let index: BTreeMap<i32, u32> = here
        .iter()
        .filter_map(|(number, _, id)| Some((*number as i32, workers.index_of(id)? as u32)))
        .collect();
    let owner = |partition: &Partition| {
        let owner = gauge.owners.get(number_of(partition))?;
        index.get(owner).copied()
    };
    let owners: Vec<Option<u32>> = partitions.iter().map(owner).collect();
    if owners.iter().all(Option::is_some) {
        let owners = owners.into_iter().flatten().collect();
        return Assignment::new(&workers, partitions, owners).ok();
    }
    let owned = partitions.iter().zip(&owners);
    let owned = owned.filter(|(_, owner)| owner.is_some());
    let owned = Partitions::new(owned.map(|(partition, _)| partition.clone())).ok()?;
    let owners = owned.iter().filter_map(owner).collect();
    Assignment::new(&workers, &owned, owners).ok()
}

fn ask_outlook(world: &dyn Hands, places: &[Place], without: Option<usize>) -> Vec<i32> {
    let count = world.count_partitions();
    let Some((outlook, names)) = outlook(world, places, without) else {
        return vec![-1; count];
    };
    let desired = (0..count).map(|number| {
        let worker = outlook.desired(&key_of(world, number)?);
        worker.and_then(|name| names.get(name)).copied()
    });
    desired
        .map(|place| place.map_or(-1, |place| place as i32))
        .collect()
}

fn outlook(
    world: &dyn Hands,
    places: &[Place],
    without: Option<usize>,
) -> Option<(Outlook, BTreeMap<String, usize>)> {
    let here: Vec<usize> = (0..places.len())
        .filter(|&number| counts(&places[number]) && Some(number) != without)
        .filter(|&number| places[number].state != PlaceState::Joining)
        .collect();
    let names = here.iter();
    let names = names.map(|&number| (places[number].name.clone(), number));
    Some((world.outlook(&here)?, names.collect()))
}

fn rank_by_outlook(
    world: &dyn Hands,
    places: &[Place],
    gauge: &Gauge,
    partition: usize,
) -> (Vec<Rank>, String) {
    let method = "Each worker has a score for each partition, from a hash of both names and its \
                  weight; the highest should have it."
        .to_owned();
    let Some((outlook, names)) = outlook(world, places, None) else {
        return (Vec::new(), method);
    };
    let Some(key) = key_of(world, partition) else {
        return (Vec::new(), method);
    };
    let owner = usize::try_from(gauge.owners[partition]).ok();
    let owner = owner.map(|owner| places[owner].name.as_str());
    let hashes = hashes(world, names.keys(), partition).unwrap_or_default();
    let ranks = outlook.ranking(&key, owner).into_iter();
    let ranks = ranks.filter_map(|considered| {
        let worker = *names.get(&considered.worker)?;
        Some(Rank {
            worker,
            hash: hashes.get(&considered.worker).cloned(),
            score: considered.score,
            weight: places[worker].weight,
            why_not: considered.rejected,
        })
    });
    (ranks.collect(), method)
}

/// What is hashed for each of these workers and a partition of lease mode,
/// whatever they weigh.
fn hashes<'a>(
    world: &dyn Hands,
    names: impl Iterator<Item = &'a String>,
    partition: usize,
) -> Option<BTreeMap<String, String>> {
    let cluster = world.cluster()?.into();
    let workers: Result<Vec<Worker>, _> = names.map(|name| Worker::new(name.as_str())).collect();
    let workers = Workers::new(workers.ok()?).ok()?;
    let name = world.name_of(partition);
    let partitions = Partitions::new([name.parse().ok()?]).ok()?;
    let explained = Rendezvous::new()
        .with_scheme(Scheme::Rendezgo { cluster })
        .explain(&name, &workers, &partitions, None);
    let ranking = explained.ok()?.ranking.into_iter();
    Some(
        ranking
            .filter_map(|ranked| Some((ranked.worker, ranked.hash?)))
            .collect(),
    )
}

/// The lease of a partition.
fn key_of(world: &dyn Hands, partition: usize) -> Option<LeaseKey> {
    let name = world.name_of(partition);
    let (group, number) = name.rsplit_once(':')?;
    LeaseKey::new(group, number.parse().ok()?).ok()
}

/// All that decides where everything should be.
fn fingerprint(mode: Mode, places: &[Place], control: &Control, gauge: &Gauge) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (number, place) in places.iter().enumerate() {
        if counts(place) {
            number.hash(&mut hasher);
            place.id.hash(&mut hasher);
            (place.state == PlaceState::Joining).hash(&mut hasher);
            (place.health == Health::Healthy).hash(&mut hasher);
            place.weight.to_bits().hash(&mut hasher);
            place.zone.hash(&mut hasher);
        }
    }
    control.encode().hash(&mut hasher);
    gauge.owners.len().hash(&mut hasher);
    if mode == Mode::Leader {
        gauge.owners.hash(&mut hasher);
    }
    hasher.finish()
}
