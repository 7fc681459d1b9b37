//! Who wins a partition: both sides prepared, pairs scored.

use std::cmp::Ordering;

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

/// An entrant with its hash for the key at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) entrant: u32,
    pub(super) hash: u64,
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
            Scheme::Native { seed } => Keys::Hashed(
                partitions
                    .map(|p| hash::bytes64(p.as_str().as_bytes(), *seed))
                    .collect(),
            ),
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

    /// Whether all of `entrants` have one weight, so that hashes alone decide.
    pub(super) fn is_uniform(&self, entrants: &[u32]) -> bool {
        let weight = |&entrant: &u32| self.entrants[entrant as usize].weight;
        entrants
            .windows(2)
            .all(|pair| weight(&pair[0]) == weight(&pair[1]))
    }

    /// The entrant that wins `key`, among `entrants` in the order of their ids.
    pub(super) fn winner(
        &self,
        key: usize,
        entrants: &[u32],
        uniform: bool,
        scratch: &mut Vec<u8>,
    ) -> Candidate {
        if let (Keys::Hashed(keys), true) = (&self.keys, uniform) {
            return self.highest_native(keys[key], entrants);
        }
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

    fn highest_native(&self, key: u64, entrants: &[u32]) -> Candidate {
        let mut best = Candidate {
            entrant: entrants[0],
            hash: 0,
        };
        for &entrant in entrants {
            let hash = match self.entrants[entrant as usize].side {
                Side::Native(mix) => u64::from(mix.hash(key)),
                Side::Named(_) => unreachable!("hashed keys meet native entrants only"),
            };
            // Strictly, so that ties stay with the smaller id.
            if hash > best.hash {
                best = Candidate { entrant, hash };
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
        let weight = |candidate: Candidate| self.entrants[candidate.entrant as usize].weight;
        let native = matches!(self.scheme, Scheme::Native { .. });
        let scores = if native && weight(challenger) == weight(champion) {
            // The order of hashes is that of scores; a logarithm is saved.
            (0.0, 0.0)
        } else {
            (self.score(challenger), self.score(champion))
        };
        self.order((challenger, scores.0), (champion, scores.1)) == Ordering::Greater
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
