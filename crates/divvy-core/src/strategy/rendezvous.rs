//! Rendezvous hashing: every worker scores every partition, the highest owns it.

mod contest;
mod cruster;
mod field;
mod filtered;
mod lanes;
mod live;
mod native;
pub(crate) mod rendezgo;

pub use cruster::CRUSTER_WEIGHT_MAX;
pub use filtered::FilteredRendezvous;
pub use live::LiveRendezvous;

use super::{Strategy, known};
use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::Explanation;
use crate::hash;
use crate::partition::Partitions;
use crate::worker::{Worker, Workers};
use contest::Contest;
use field::{Field, Winner};

/// How many keys are placed at a time: few enough to stay in the first cache.
const PIECE: usize = 1024;

/// How a worker's score for a partition comes about. All members of a cluster
/// need the same scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// divvy's own. Another seed gives an independent placement.
    Native {
        /// Hashed into partitions and workers alike.
        seed: u64,
    },
    /// That of `cruster`, bit for bit: whole weights only, of at most
    /// [`CRUSTER_WEIGHT_MAX`]; workers are named `host:port`.
    Cruster,
    /// That of `rendezgo`: the same owner and the same ranking. Partitions are
    /// named `workload:unit`.
    Rendezgo {
        /// The cluster that the workers belong to; it is part of their names.
        cluster: String,
    },
}

impl Default for Scheme {
    fn default() -> Self {
        Self::Native { seed: 0 }
    }
}

/// Gives each partition to the worker with the highest score for it.
///
/// Natively the score is `weight / -ln(u)`, where `u` in (0, 1) is a hash of
/// partition and worker: see [`Scheme`] for the others. With equal weights that
/// is the highest hash. Ties go to the smaller worker id (to the larger one under
/// [`Scheme::Cruster`], as there).
///
/// Guarantees that a departed worker moves only its own partitions, to the
/// others in proportion to their weights, that a new one only gains, and shares
/// in proportion to the weights. Does not look at partition weights, and does not promise even
/// counts: they are binomial, so 2048 partitions on 3 workers give each
/// 683 with a standard deviation of 21.
///
/// Costs one short hash per pair of partition and worker.
///
/// ```
/// use divvy_core::{Partitions, Rendezvous, Strategy, Worker, Workers};
///
/// let workers = Workers::new([Worker::new("big")?.with_weight(3.0)?, Worker::new("small")?])?;
/// let partitions = Partitions::shards([("default", 2048)])?;
/// let assignment = Rendezvous::new().assign(&workers, &partitions, None)?;
/// assert_eq!(assignment.counts(), [1570, 478]);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendezvous {
    scheme: Scheme,
    parallel: bool,
}

impl Rendezvous {
    /// The native scheme with seed 0, on one core.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same placement as [`Rendezvous::new`], computed on all cores.
    ///
    /// It pays from about 100,000 partitions on: measured on 2 cores, 1.8 times
    /// as fast at 1,000,000 partitions and 1000 workers, even at 10,000
    /// partitions, and slower below.
    #[cfg(feature = "parallel")]
    pub fn parallel() -> Self {
        Self {
            parallel: true,
            ..Self::default()
        }
    }

    /// The same by another scheme.
    pub fn with_scheme(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
    }

    /// The scheme.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// A placement that is kept up to date as workers join and leave, at a
    /// fraction of the cost of computing it anew.
    pub fn live(
        &self,
        workers: &Workers,
        partitions: &Partitions,
    ) -> Result<LiveRendezvous, Error> {
        LiveRendezvous::new(self, workers, partitions)
    }

    /// By key, the number of the entrant that wins it.
    fn winners(&self, contest: &Contest, entrants: &[u32]) -> Vec<u32> {
        let prepared = contest.prepare(entrants);
        let keys: Vec<u32> = (0..contest.len() as u32).collect();
        let winners_of = |keys: &[u32]| {
            let mut winners = Vec::with_capacity(keys.len());
            prepared.winners(keys, &mut winners);
            winners.into_iter().map(|winner| winner.entrant)
        };
        #[cfg(feature = "parallel")]
        if self.parallel {
            use rayon::prelude::*;
            return keys.par_chunks(PIECE).flat_map_iter(winners_of).collect();
        }
        keys.chunks(PIECE).flat_map(winners_of).collect()
    }
}

impl Strategy for Rendezvous {
    fn name(&self) -> &str {
        if self.parallel {
            "rendezvous-parallel"
        } else {
            "rendezvous"
        }
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        let eligible = workers.eligible()?;
        let contest = Contest::new(&self.scheme, workers, partitions.iter())?;
        Assignment::new(workers, partitions, self.winners(&contest, &eligible))
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        let index = known(partition, partitions)?;
        workers.eligible()?;
        let only = &partitions.as_slice()[index..=index];
        let contest = Contest::new(&self.scheme, workers, only.iter())?;
        let weighted = |worker: &Worker| worker.weight() > 0.0;
        let entrants: Vec<u32> = (0..workers.len() as u32)
            .filter(|&index| weighted(&workers.as_slice()[index as usize]))
            .collect();
        let ranked = contest.ranking(0, &entrants).into_iter().map(|candidate| {
            let worker = &workers.as_slice()[candidate.entrant as usize];
            let hash = contest.shown_hash(candidate);
            (worker, Some(hash), Some(contest.score(candidate)))
        });
        let absent = workers.iter().filter(|worker| !weighted(worker));
        let candidates = ranked.chain(absent.map(|worker| (worker, None, None)));
        Ok(Explanation::ranked(partition, self.method(), candidates))
    }
}

/// Native rendezvous for one partition at a time.
#[derive(Debug)]
pub(super) struct Chooser {
    field: Field,
    seed: u64,
    found: Vec<Winner>,
}

impl Chooser {
    pub(super) fn new(workers: &Workers, seed: u64) -> Result<Self, Error> {
        let eligible = workers.eligible()?;
        let contest = Contest::new(&Scheme::Native { seed }, workers, std::iter::empty())?;
        Ok(Self {
            field: contest.field(&eligible),
            seed,
            found: Vec::new(),
        })
    }

    /// The indices of the workers that own the partitions with these text
    /// forms.
    pub(super) fn choose_all<'a>(&self, partitions: impl Iterator<Item = &'a str>) -> Vec<u32> {
        let hash = |partition: &str| hash::bytes64(partition.as_bytes(), self.seed);
        let keys: Vec<u64> = partitions.map(hash).collect();
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(PIECE) {
            self.field.winners(keys, &mut found);
        }
        found.into_iter().map(|winner| winner.number).collect()
    }

    /// The index of the worker that owns the partition with this text form.
    pub(super) fn choose(&mut self, partition: &str) -> u32 {
        let key = hash::bytes64(partition.as_bytes(), self.seed);
        self.found.clear();
        self.field.winners(&[key], &mut self.found);
        self.found[0].number
    }
}

impl Rendezvous {
    fn method(&self) -> &'static str {
        match self.scheme {
            Scheme::Native { .. } => {
                "The highest score owns it. Hash is a hash of partition and worker; \
                 u = (hash + 0.5) / 2^32 and score = weight / -ln(u)."
            }
            Scheme::Cruster => {
                "The highest hash owns it: the maximum over as many hashes of partition and \
                 worker as the worker's weight. Score = hash / 2^64."
            }
            Scheme::Rendezgo { .. } => {
                "The highest score owns it. Hash is XXH64 of slot and node; u = hash / 2^64 and \
                 score = weight / -ln(u)."
            }
        }
    }
}
