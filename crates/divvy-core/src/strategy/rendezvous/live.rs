//! Rendezvous that follows joins and leaves.

use std::collections::BTreeMap;

use super::contest::{Candidate, Contest};
use super::{Rendezvous, Scheme};
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
    /// By partition, who owns it; `None` while nobody is eligible.
    champions: Vec<Option<Candidate>>,
}

impl LiveRendezvous {
    pub(super) fn new(
        rendezvous: &Rendezvous,
        workers: &Workers,
        partitions: &Partitions,
    ) -> Result<Self, Error> {
        let scheme: &Scheme = rendezvous.scheme();
        let mut live = Self {
            contest: Contest::new(scheme, workers, partitions.iter())?,
            partitions: partitions.clone(),
            members: workers
                .iter()
                .zip(0..)
                .map(|(worker, number)| (worker.id().into(), (worker.clone(), number)))
                .collect(),
            vacant: Vec::new(),
            champions: vec![None; partitions.len()],
        };
        live.settle(|_| true);
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
        let mut gained = 0;
        if worker.is_eligible() {
            let mut scratch = Vec::new();
            for (key, champion) in self.champions.iter_mut().enumerate() {
                let challenger = self.contest.candidate(key, number, &mut scratch);
                if champion.is_none_or(|champion| self.contest.beats(challenger, champion)) {
                    *champion = Some(challenger);
                    gained += 1;
                }
            }
        }
        self.members.insert(worker.id().into(), (worker, number));
        Ok(gained)
    }

    /// Removes a worker and returns how many partitions it had. An unknown id
    /// is an error, and nothing changes.
    pub fn leave(&mut self, id: &str) -> Result<usize, Error> {
        let Some((_, number)) = self.members.remove(id) else {
            return Err(Invalid::new("worker id", id, "has not joined").into());
        };
        let lost = self.settle(|champion| champion.is_some_and(|c| c.entrant == number));
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
        let owners = self.champions.iter().map(|champion| {
            let champion = champion.expect("somebody is eligible, so every partition has an owner");
            index_of[champion.entrant as usize]
        });
        Assignment::new(&workers, &self.partitions, owners.collect())
    }

    /// Finds the owner anew for the partitions whose champion is `stale`, and
    /// returns how many those are.
    fn settle(&mut self, stale: impl Fn(Option<Candidate>) -> bool) -> usize {
        let eligible: Vec<u32> = self
            .members
            .values()
            .filter(|(worker, _)| worker.is_eligible())
            .map(|&(_, number)| number)
            .collect();
        let uniform = self.contest.is_uniform(&eligible);
        let mut scratch = Vec::new();
        let mut settled = 0;
        for (key, champion) in self.champions.iter_mut().enumerate() {
            if !stale(*champion) {
                continue;
            }
            settled += 1;
            *champion = (!eligible.is_empty())
                .then(|| self.contest.winner(key, &eligible, uniform, &mut scratch));
        }
        settled
    }
}
