//! Rendezvous among a few of very many workers.

use super::contest::Contest;
use super::field::Winner;
use super::{Rendezvous, Scheme};
use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::{Explanation, Ranked};
use crate::hash;
use crate::partition::Partitions;
use crate::strategy::{Strategy, known};
use crate::worker::{Veto, Worker, Workers};

/// Buckets that keys are sorted into. Pinned, as all of placement is.
const BUCKET_BITS: u32 = 12;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// Buckets that each worker stands in, some of them twice.
const SEATS: u64 = 32;

/// The step of the counter that numbers a worker's seats, as on the ring.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Rendezvous for more workers than every key should meet: from about 10,000
/// on.
///
/// Every worker stands in 32 of 4096 buckets, chosen by its id; a key belongs
/// to one bucket and meets only the workers that stand there, about one in 128.
/// Whoever has the highest native score among them owns it; where nobody
/// stands, all take part.
///
/// Guarantees, as [`Rendezvous`] does, that a departed worker moves only its
/// own partitions and that a new one only gains: which buckets a worker stands
/// in does not depend on the others. Does not give [`Rendezvous`]' placement,
/// and is less even by what buckets of different size bring: a standard
/// deviation of about `2 / sqrt(workers)` of the mean on top, 2 % at 10,000
/// workers. With fewer take [`Rendezvous`], which is fast enough for them.
///
/// ```
/// use divvy_core::{FilteredRendezvous, Partitions, Strategy, Workers};
///
/// let partitions = Partitions::shards([("default", 1000)])?;
/// let before = FilteredRendezvous::new().assign(&Workers::numbered("w", 20_000)?, &partitions, None)?;
/// let after = FilteredRendezvous::new().assign(&Workers::numbered("w", 20_100)?, &partitions, None)?;
/// let moves = after.moves_from(&before);
/// assert!(moves.len() < 20, "{}", moves.len());
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilteredRendezvous {
    seed: u64,
}

impl FilteredRendezvous {
    /// Seed 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another seed, which gives an independent placement.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed }
    }

    fn scheme(&self) -> Scheme {
        Scheme::Native { seed: self.seed }
    }

    /// By bucket, the indices of those workers that stand in it, in the order
    /// of their ids.
    fn seated(&self, workers: &Workers, takes_part: impl Fn(&Worker) -> bool) -> Vec<Vec<u32>> {
        let mut buckets = vec![Vec::new(); BUCKETS];
        for (worker, index) in workers.iter().zip(0..) {
            if !takes_part(worker) {
                continue;
            }
            // The upper half; rendezvous itself uses none of these bits but a few.
            let start = (hash::worker128(worker.id(), self.seed) >> 64) as u64;
            for seat in 1..=SEATS {
                let place = hash::mix64(start.wrapping_add(seat.wrapping_mul(STEP)));
                let bucket = &mut buckets[(place >> (u64::BITS - BUCKET_BITS)) as usize];
                if bucket.last() != Some(&index) {
                    bucket.push(index);
                }
            }
        }
        buckets
    }
}

fn bucket_of(key: u64) -> usize {
    (hash::mix64(key) >> (u64::BITS - BUCKET_BITS)) as usize
}

impl Strategy for FilteredRendezvous {
    fn name(&self) -> &str {
        "rendezvous-filtered"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        _previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        let everybody = workers.eligible()?;
        let contest = Contest::new(&self.scheme(), workers, partitions.iter())?;
        let keys = contest
            .native_keys()
            .expect("the native scheme has hashed keys");
        let seated = self.seated(workers, Worker::is_eligible);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); BUCKETS];
        for (&key, number) in keys.iter().zip(0..) {
            members[bucket_of(key)].push(number);
        }
        let mut owners = vec![0; keys.len()];
        let mut found: Vec<Winner> = Vec::new();
        for (numbers, seated) in members.iter().zip(&seated) {
            if numbers.is_empty() {
                continue;
            }
            let candidates = if seated.is_empty() {
                &everybody
            } else {
                seated
            };
            let met: Vec<u64> = numbers
                .iter()
                .map(|&number| keys[number as usize])
                .collect();
            found.clear();
            contest.field(candidates).winners(&met, &mut found);
            for (&number, winner) in numbers.iter().zip(&found) {
                owners[number as usize] = winner.number;
            }
        }
        Assignment::new(workers, partitions, owners)
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        known(partition, partitions)?;
        workers.eligible()?;
        let bucket = bucket_of(hash::bytes64(partition.as_bytes(), self.seed));
        let seated = &self.seated(workers, |worker| worker.weight() > 0.0)[bucket];
        let all = workers.as_slice();
        let rendezvous = Rendezvous::new().with_scheme(self.scheme());
        // Where nobody fit stands, everybody takes part.
        let anybody = seated
            .iter()
            .any(|&index| all[index as usize].is_eligible());
        let explanation = if anybody {
            let standing = seated.iter().map(|&index| all[index as usize].clone());
            let standing = Workers::new(standing)?;
            let ranked = rendezvous.explain(partition, &standing, partitions, previous)?;
            with_the_others(ranked, workers, &standing)
        } else {
            rendezvous.explain(partition, workers, partitions, previous)?
        };
        let standing = seated.len();
        Ok(Explanation {
            method: format!(
                "The partition belongs to bucket {bucket} of {BUCKETS}, in which {standing} of {} \
                 workers stand. {}",
                all.len(),
                explanation.method
            ),
            ..explanation
        })
    }
}

/// Adds those who do not stand in the bucket at the end of the ranking.
fn with_the_others(mut ranked: Explanation, workers: &Workers, standing: &Workers) -> Explanation {
    let others = workers
        .iter()
        .filter(|worker| standing.index_of(worker.id()).is_none());
    let next = ranked.ranking.len() + 1;
    let unranked = |(worker, rank): (&Worker, usize)| Ranked {
        rank,
        worker: worker.id().to_owned(),
        weight: worker.weight(),
        hash: None,
        score: None,
        load: None,
        veto: worker.veto().or(Some(Veto::Filtered)),
    };
    ranked.ranking.extend(others.zip(next..).map(unranked));
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::Partition;

    /// The definition, word by word.
    fn owner(partition: &str, workers: &Workers) -> usize {
        let key = hash::bytes64(partition.as_bytes(), 0);
        let stands = |worker: &Worker| {
            let start = (hash::worker128(worker.id(), 0) >> 64) as u64;
            (1..=SEATS).any(|seat| {
                let place = hash::mix64(start.wrapping_add(seat.wrapping_mul(STEP)));
                place >> 52 == hash::mix64(key) >> 52
            })
        };
        let fit = |worker: &Worker| worker.is_eligible();
        let anybody = workers.iter().any(|worker| fit(worker) && stands(worker));
        let candidates = workers.iter().filter(|w| fit(w) && (stands(w) || !anybody));
        let candidates = Workers::new(candidates.cloned()).unwrap();
        let partitions = Partitions::new([partition.parse::<Partition>().unwrap()]).unwrap();
        let won = Rendezvous::new()
            .assign(&candidates, &partitions, None)
            .unwrap();
        workers
            .index_of(won.owner_of(partition).unwrap().id())
            .unwrap()
    }

    #[test]
    fn owners_are_those_of_the_definition() {
        let partitions = Partitions::shards([("default", 60)]).unwrap();
        for count in [1, 5, 300, 3000] {
            let worker = |n: usize| {
                let weight = if n % 7 == 3 {
                    0.0
                } else {
                    1.0 + (n % 3) as f64
                };
                Worker::new(format!("w{n}"))
                    .unwrap()
                    .with_weight(weight)
                    .unwrap()
            };
            let workers = Workers::new((0..count).map(worker)).unwrap();
            let assignment = FilteredRendezvous::new()
                .assign(&workers, &partitions, None)
                .unwrap();
            for (partition, &found) in partitions.iter().zip(assignment.owners()) {
                assert_eq!(
                    found as usize,
                    owner(partition.as_str(), &workers),
                    "{count}"
                );
            }
        }
    }
}
