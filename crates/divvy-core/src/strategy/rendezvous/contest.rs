//! Who wins a partition: both sides prepared, pairs scored.

use std::cmp::Ordering;

use super::cruster::Tickets;
use super::field::{Field, Winner, beats};
use super::{Scheme, cruster, native, rendezgo};
use crate::error::Error;
use crate::hash;
use crate::partition::Partition;
use crate::worker::Worker;

/// Partitions (keys) and workers (entrants) with everything hashed that can be
/// hashed before they meet.
#[derive(Debug, Clone)]
pub(super) struct Contest {
    scheme: Scheme,
    keys: Keys,
    entrants: Vec<Entrant>,
}

#[derive(Debug, Clone)]
enum Keys {
    Hashed(Vec<u64>),
    Named(Vec<Box<str>>),
}

#[derive(Debug, Clone)]
struct Entrant {
    id: Box<str>,
    weight: f64,
    side: Side,
}

#[derive(Debug, Clone)]
enum Side {
    Native(native::Mix),
    Named(Box<str>),
}

/// Entrants ready to be met by many keys.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    way: Way<'a>,
}

#[derive(Debug)]
enum Way<'a> {
    Native(&'a [u64], Field),
    Cruster(&'a [Box<str>], Tickets),
    Plain(&'a Contest, &'a [u32]),
}

impl Prepared<'_> {
    /// Appends the winner of each of `keys`.
    pub(super) fn winners(&self, keys: &[u32], winners: &mut Vec<Candidate>) {
        match &self.way {
            Way::Native(hashes, field) => {
                let hashes: Vec<u64> = keys.iter().map(|&key| hashes[key as usize]).collect();
                let mut found = Vec::with_capacity(keys.len());
                field.winners(&hashes, &mut found);
                winners.extend(found.into_iter().map(Candidate::from));
            }
            Way::Cruster(names, tickets) => {
                winners.extend(keys.iter().map(|&key| {
                    let (entrant, hash) = tickets.winner(&names[key as usize]);
                    Candidate { entrant, hash }
                }));
            }
            Way::Plain(contest, entrants) => {
                let mut scratch = Vec::new();
                let winner = |&key: &u32| contest.winner(key as usize, entrants, &mut scratch);
                winners.extend(keys.iter().map(winner));
            }
        }
    }
}

/// An entrant with its hash for the key at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) entrant: u32,
    pub(super) hash: u64,
}

impl From<Winner> for Candidate {
    fn from(winner: Winner) -> Self {
        Self {
            entrant: winner.number,
            hash: u64::from(winner.hash),
        }
    }
}

impl Contest {
    /// A contest for `partitions` among `workers`, entrants numbered as the
    /// workers are, eligible or not.
    pub(super) fn new<'a>(
        scheme: &Scheme,
        workers: impl IntoIterator<Item = &'a Worker>,
        partitions: impl Iterator<Item = &'a Partition>,
    ) -> Result<Self, Error> {
        let keys = match scheme {
            Scheme::Native { seed } => {
                let hash = |p: &Partition| hash::bytes64(p.as_str().as_bytes(), *seed);
                Keys::Hashed(partitions.map(hash).collect())
            }
            Scheme::Cruster => Keys::Named(partitions.map(|p| p.as_str().into()).collect()),
            Scheme::Rendezgo { .. } => Keys::Named(
                partitions
                    .map(|p| rendezgo::slot(p).map(Into::into))
                    .collect::<Result<_, _>>()?,
            ),
        };
        let mut contest = Self {
            scheme: scheme.clone(),
            keys,
            entrants: Vec::new(),
        };
        for worker in workers {
            contest.enter(worker, None)?;
        }
        Ok(contest)
    }

    /// Adds an entrant, in the place of another that is `vacant` if there is
    /// one, and returns its number.
    pub(super) fn enter(&mut self, worker: &Worker, vacant: Option<u32>) -> Result<u32, Error> {
        let side = match &self.scheme {
            Scheme::Native { seed } => Side::Native(native::Mix::new(worker.id(), *seed)),
            Scheme::Cruster => {
                cruster::check(worker)?;
                Side::Named(worker.id().into())
            }
            Scheme::Rendezgo { cluster } => {
                Side::Named(rendezgo::node(cluster, worker.id()).into())
            }
        };
        let entrant = Entrant {
            id: worker.id().into(),
            weight: worker.weight(),
            side,
        };
        if let Some(number) = vacant {
            self.entrants[number as usize] = entrant;
            return Ok(number);
        }
        self.entrants.push(entrant);
        Ok(self.entrants.len() as u32 - 1)
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        match &self.keys {
            Keys::Hashed(keys) => keys.len(),
            Keys::Named(keys) => keys.len(),
        }
    }

    /// `entrants`, in the order of their ids, ready to be met by keys.
    pub(super) fn prepare<'a>(&'a self, entrants: &'a [u32]) -> Prepared<'a> {
        let way = match &self.keys {
            Keys::Hashed(keys) => Way::Native(keys, self.field(entrants)),
            Keys::Named(keys) if self.scheme == Scheme::Cruster => {
                let named = entrants.iter().map(|&entrant| {
                    let Entrant { id, weight, .. } = &self.entrants[entrant as usize];
                    (entrant, &**id, *weight)
                });
                Way::Cruster(keys, Tickets::new(named))
            }
            Keys::Named(_) => Way::Plain(self, entrants),
        };
        Prepared { way }
    }

    /// The keys' hashes, where pairs are scored by them.
    pub(super) fn native_keys(&self) -> Option<&[u64]> {
        match &self.keys {
            Keys::Hashed(keys) => Some(keys),
            Keys::Named(_) => None,
        }
    }

    /// The mix and weight of a native entrant.
    pub(super) fn native_entrant(&self, entrant: u32) -> (native::Mix, f64) {
        let Entrant { weight, side, .. } = &self.entrants[entrant as usize];
        match side {
            Side::Native(mix) => (*mix, *weight),
            Side::Named(_) => unreachable!("hashed keys meet native entrants only"),
        }
    }

    /// Native `entrants`, in the order of their ids, ready to be met by keys.
    pub(super) fn field(&self, entrants: &[u32]) -> Field {
        Field::new(entrants.iter().map(|&entrant| {
            let (mix, weight) = self.native_entrant(entrant);
            (entrant, mix, weight)
        }))
    }

    /// The entrant that wins a key, among `entrants`.
    fn winner(&self, key: usize, entrants: &[u32], scratch: &mut Vec<u8>) -> Candidate {
        let mut best = self.candidate(key, entrants[0], scratch);
        let mut best_score = self.score(best);
        for &entrant in &entrants[1..] {
            let candidate = self.candidate(key, entrant, scratch);
            let score = self.score(candidate);
            if self.order((candidate, score), (best, best_score)) == Ordering::Greater {
                (best, best_score) = (candidate, score);
            }
        }
        best
    }

    /// All of `entrants`, the best for `key` first.
    pub(super) fn ranking(&self, key: usize, entrants: &[u32]) -> Vec<Candidate> {
        let mut scratch = Vec::new();
        let mut ranked: Vec<(Candidate, f64)> = entrants
            .iter()
            .map(|&entrant| self.candidate(key, entrant, &mut scratch))
            .map(|candidate| (candidate, self.score(candidate)))
            .collect();
        ranked.sort_by(|&a, &b| self.order(b, a));
        ranked.into_iter().map(|(candidate, _)| candidate).collect()
    }

    /// `entrant` with its hash for `key`.
    pub(super) fn candidate(&self, key: usize, entrant: u32, scratch: &mut Vec<u8>) -> Candidate {
        let Entrant { weight, side, .. } = &self.entrants[entrant as usize];
        let hash = match (&self.keys, side) {
            (Keys::Hashed(keys), Side::Native(mix)) => u64::from(mix.hash(keys[key])),
            (Keys::Named(keys), Side::Named(name)) => match self.scheme {
                Scheme::Cruster => cruster::hash(&keys[key], name, *weight),
                _ => rendezgo::hash(&keys[key], name, scratch),
            },
            _ => unreachable!("keys and entrants are made by one scheme"),
        };
        Candidate { entrant, hash }
    }

    /// Whether `challenger` takes the key from `champion`.
    pub(super) fn beats(&self, challenger: Candidate, champion: Candidate) -> bool {
        if let Scheme::Native { .. } = self.scheme {
            let side = |candidate: Candidate| {
                let weight = self.entrants[candidate.entrant as usize].weight;
                (candidate.hash as u32, weight)
            };
            let id = |candidate: Candidate| &self.entrants[candidate.entrant as usize].id;
            return beats(side(challenger), side(champion), || {
                id(challenger) < id(champion)
            });
        }
        let scored = |candidate: Candidate| (candidate, self.score(candidate));
        self.order(scored(challenger), scored(champion)) == Ordering::Greater
    }

    pub(super) fn score(&self, candidate: Candidate) -> f64 {
        let weight = self.entrants[candidate.entrant as usize].weight;
        match self.scheme {
            Scheme::Native { .. } => native::score(candidate.hash as u32, weight),
            Scheme::Cruster => cruster::score(candidate.hash),
            Scheme::Rendezgo { .. } => rendezgo::score(candidate.hash, weight),
        }
    }

    pub(super) fn shown_hash(&self, candidate: Candidate) -> String {
        match self.scheme {
            Scheme::Native { .. } => format!("{:08x}", candidate.hash),
            Scheme::Cruster | Scheme::Rendezgo { .. } => format!("{:016x}", candidate.hash),
        }
    }

    /// `Greater` where `a` ranks above `b`.
    fn order(&self, a: (Candidate, f64), b: (Candidate, f64)) -> Ordering {
        let id = |candidate: Candidate| &self.entrants[candidate.entrant as usize].id;
        match self.scheme {
            Scheme::Cruster => {
                let hashes = a.0.hash.cmp(&b.0.hash);
                hashes.then_with(|| id(a.0).cmp(id(b.0)))
            }
            Scheme::Native { .. } => {
                a.1.total_cmp(&b.1)
                    .then(a.0.hash.cmp(&b.0.hash))
                    .then_with(|| id(b.0).cmp(id(a.0)))
            }
            // rendezgo breaks ties of the score by id alone.
            Scheme::Rendezgo { .. } => a.1.total_cmp(&b.1).then_with(|| id(b.0).cmp(id(a.0))),
        }
    }
}
