//! Rendezvous that follows joins and leaves.

use std::collections::BTreeMap;

use super::contest::{Candidate, Contest};
use super::{Rendezvous, lanes};
use crate::assignment::Assignment;
use crate::error::{Error, Invalid};
use crate::partition::Partitions;
use crate::worker::{WORKERS_MAX, Worker, Workers};

/// A rendezvous placement that is kept up to date as workers come and go.
///
/// After any sequence of joins and leaves it is equal to what
/// [`Rendezvous`] computes from scratch. A join compares one score per
/// partition, a leave looks only at the partitions of the one that left.
///
/// ```
/// use divvy_core::{Partitions, Rendezvous, Strategy, Worker, Workers};
///
/// let partitions = Partitions::shards([("default", 100)])?;
/// let mut live = Rendezvous::new().live(&Workers::of(["a", "b"])?, &partitions)?;
/// let gained = live.join(Worker::new("c")?)?;
/// let lost = live.leave("a")?;
/// assert!(gained > 0 && lost > 0);
///
/// let anew = Rendezvous::new().assign(&Workers::of(["b", "c"])?, &partitions, None)?;
/// assert_eq!(live.assignment()?, anew);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LiveRendezvous {
    contest: Contest,
    partitions: Partitions,
    /// By id, the worker and its number in the contest.
    members: BTreeMap<Box<str>, (Worker, u32)>,
    /// Numbers whose worker left, to be used again.
    vacant: Vec<u32>,
    /// By partition, the number of its owner; [`NOBODY`] while nobody is
    /// eligible.
    owners: Vec<u32>,
    /// By partition, its owner's hash for it.
    hashes: Hashes,
}

/// The owner where there is none.
const NOBODY: u32 = u32::MAX;

/// Hashes of owners, as wide as the scheme's are.
#[derive(Debug, Clone)]
enum Hashes {
    Native(Vec<u32>),
    Named(Vec<u64>),
}

impl LiveRendezvous {
    pub(super) fn new(
        rendezvous: &Rendezvous,
        workers: &Workers,
        partitions: &Partitions,
    ) -> Result<Self, Error> {
        let contest = Contest::new(rendezvous.scheme(), workers, partitions.iter())?;
        let hashes = match contest.native_keys() {
            Some(keys) => Hashes::Native(vec![0; keys.len()]),
            None => Hashes::Named(vec![0; contest.len()]),
        };
        let mut live = Self {
            contest,
            partitions: partitions.clone(),
            members: workers
                .iter()
                .zip(0..)
                .map(|(worker, number)| (worker.id().into(), (worker.clone(), number)))
                .collect(),
            vacant: Vec::new(),
            owners: vec![NOBODY; partitions.len()],
            hashes,
        };
        live.settle(NOBODY);
        Ok(live)
    }

    /// Adds a worker and returns how many partitions it takes over. An id that
    /// is there already is an error, and nothing changes. A worker that is
    /// unhealthy or of weight 0 takes nothing.
    pub fn join(&mut self, worker: Worker) -> Result<usize, Error> {
        if self.members.contains_key(worker.id()) {
            return Err(Invalid::new("worker id", worker.id(), "has joined already").into());
        }
        if self.members.len() == WORKERS_MAX {
            let rule = format!("cannot join: at most {WORKERS_MAX} workers are allowed");
            return Err(Invalid::new("worker id", worker.id(), rule).into());
        }
        let number = self.contest.enter(&worker, self.vacant.last().copied())?;
        self.vacant.pop();
        let gained = match worker.is_eligible() {
            true => self.take_over(number, &worker),
            false => 0,
        };
        self.members.insert(worker.id().into(), (worker, number));
        Ok(gained)
    }

    /// Removes a worker and returns how many partitions it had. An unknown id
    /// is an error, and nothing changes.
    pub fn leave(&mut self, id: &str) -> Result<usize, Error> {
        let Some((_, number)) = self.members.remove(id) else {
            return Err(Invalid::new("worker id", id, "has not joined").into());
        };
        let lost = self.settle(number);
        self.vacant.push(number);
        Ok(lost)
    }

    /// The workers that are there now.
    pub fn workers(&self) -> Result<Workers, Error> {
        Workers::new(self.members.values().map(|(worker, _)| worker.clone()))
    }

    /// The placement as it is now, or [`Error::NoWorkers`].
    pub fn assignment(&self) -> Result<Assignment, Error> {
        let workers = self.workers()?;
        workers.eligible()?;
        let numbers_end = self.members.values().map(|&(_, number)| number + 1).max();
        let mut index_of = vec![0; numbers_end.unwrap_or(0) as usize];
        for ((_, number), index) in self.members.values().zip(0..) {
            index_of[*number as usize] = index;
        }
        // Somebody is eligible, so every partition has an owner.
        let owners = self.owners.iter().map(|&owner| index_of[owner as usize]);
        Assignment::new(&workers, &self.partitions, owners.collect())
    }

    /// Gives a new entrant what it wins, and returns how much that is.
    fn take_over(&mut self, number: u32, worker: &Worker) -> usize {
        let mut rivals = self
            .members
            .values()
            .filter(|(rival, _)| rival.is_eligible());
        let keys: Vec<u32> = match (self.contest.native_keys(), &self.hashes) {
            (Some(keys), Hashes::Native(hashes))
                if rivals.all(|(rival, _)| rival.weight() == worker.weight()) =>
            {
                // With one weight only a hash that is as high can win.
                let (mix, _) = self.contest.native_entrant(number);
                let mut found = Vec::new();
                lanes::challenge(keys, mix, hashes, &mut found);
                found
            }
            _ => (0..self.owners.len() as u32).collect(),
        };
        let mut scratch = Vec::new();
        let mut gained = 0;
        for key in keys {
            let challenger = self.contest.candidate(key as usize, number, &mut scratch);
            let champion = self.champion(key as usize);
            if champion.is_none_or(|champion| self.contest.beats(challenger, champion)) {
                self.crown(key as usize, challenger);
                gained += 1;
            }
        }
        gained
    }

    /// Finds the owner anew for the partitions of `owner`, and returns how many
    /// those are.
    fn settle(&mut self, owner: u32) -> usize {
        let owned = (0..).zip(&self.owners);
        let orphans: Vec<u32> = owned
            .filter(|&(_, &other)| other == owner)
            .map(|(key, _)| key)
            .collect();
        let eligible: Vec<u32> = self
            .members
            .values()
            .filter(|(worker, _)| worker.is_eligible())
            .map(|&(_, number)| number)
            .collect();
        if eligible.is_empty() {
            // With a hash of 0, so that whoever joins next wins it.
            let (entrant, hash) = (NOBODY, 0);
            for &key in &orphans {
                self.crown(key as usize, Candidate { entrant, hash });
            }
            return orphans.len();
        }
        let mut winners = Vec::with_capacity(orphans.len());
        self.contest
            .prepare(&eligible)
            .winners(&orphans, &mut winners);
        for (&key, winner) in orphans.iter().zip(winners) {
            self.crown(key as usize, winner);
        }
        orphans.len()
    }

    fn champion(&self, key: usize) -> Option<Candidate> {
        let hash = match &self.hashes {
            Hashes::Native(hashes) => u64::from(hashes[key]),
            Hashes::Named(hashes) => hashes[key],
        };
        let entrant = self.owners[key];
        (entrant != NOBODY).then_some(Candidate { entrant, hash })
    }

    fn crown(&mut self, key: usize, winner: Candidate) {
        self.owners[key] = winner.entrant;
        match &mut self.hashes {
            Hashes::Native(hashes) => hashes[key] = winner.hash as u32,
            Hashes::Named(hashes) => hashes[key] = winner.hash,
        }
    }
}
