//! Which partitions cannot stay when every worker has a number of seats.
//!
//! This and counting are the only passes over all partitions when planning by count, so they decide how long
//! a plan of a million takes. The search goes from the end and stops when all are found: a worker gives up
//! those of the largest index, and if all workers give up a few, these are near the end.

use super::problem::{GONE, NONE, Problem};
use crate::simd::{Batch, vectorised};

/// Owners looked at together in a table.
const LANES: usize = 16;

/// Up to so many workers are compared with, in vector instructions, instead of looked up.
const FEW: usize = 3;

/// Owners compared together: a bit of a word each.
const BITS: usize = u32::BITS as usize;

/// Words marked at a time. Their owners stay in the nearest cache until they are looked at again.
const BLOCK: usize = 64;

/// Partitions that have no worker, and of a worker with more than its seats those of the largest index;
/// ascending.
pub(super) fn released(problem: &Problem<'_>, seats: &[u64], held: &[u32]) -> Vec<u32> {
    let mut givers = Givers::new(problem.previous.len(), seats, held);
    match givers.few() {
        Some(few) => givers.search_by_comparison(problem.previous, few),
        None => givers.search_by_table(problem.previous),
    }
    assert_eq!(givers.left, 0, "every surplus partition was found");
    givers.found.reverse();
    givers.found
}

/// How many partitions each worker has to give up, how many are left to find, those without a slot included,
/// and those that are found.
struct Givers {
    surplus: Vec<u32>,
    left: u64,
    found: Vec<u32>,
}

impl Givers {
    fn new(partitions: usize, seats: &[u64], held: &[u32]) -> Self {
        let surplus = |(&seats, &held): (&u64, &u32)| held.saturating_sub(seats as u32);
        let surplus: Vec<u32> = seats.iter().zip(held).map(surplus).collect();
        let sum = |of: &[u32]| of.iter().map(|&count| u64::from(count)).sum::<u64>();
        let slotless = partitions as u64 - sum(held);
        let left = sum(&surplus) + slotless;
        Self {
            surplus,
            left,
            found: Vec::with_capacity(left as usize),
        }
    }

    /// The workers that give, if they are few.
    fn few(&self) -> Option<[u32; FEW]> {
        let gives = |&worker: &u32| self.surplus[worker as usize] > 0;
        let mut givers = (0..self.surplus.len() as u32).filter(gives);
        // NONE is searched for in any case.
        let few = [(); FEW].map(|()| givers.next().unwrap_or(NONE));
        givers.next().is_none().then_some(few)
    }

    /// Finds everything when no others than these workers give.
    fn search_by_comparison(&mut self, owners: &[u32], workers: [u32; FEW]) {
        let (head, words) = owners.as_rchunks::<BITS>();
        let mut hits = [Hit::default(); BLOCK];
        let mut start = owners.len();
        for block in words.rchunks(BLOCK) {
            if self.left == 0 {
                return;
            }
            start -= block.len() * BITS;
            let marked = vectorised(Mark {
                words: block,
                workers,
                hits: &mut hits,
            });
            for hit in &hits[..marked] {
                // Only those lanes: where a few of many give, to look at each would be most of the work.
                let mut lanes = hit.lanes;
                while lanes != 0 {
                    let lane = lanes.ilog2() as usize;
                    lanes ^= 1 << lane;
                    let at = hit.word as usize * BITS + lane;
                    self.give(start + at, block.as_flattened()[at]);
                }
            }
        }
        self.give_all(0, head);
    }

    /// Finds everything, whoever gives.
    fn search_by_table(&mut self, owners: &[u32]) {
        let (head, chunks) = owners.as_rchunks::<LANES>();
        for (at, owners) in chunks.iter().enumerate().rev() {
            if self.left == 0 {
                return;
            }
            if self.any(owners) {
                self.give_all(head.len() + at * LANES, owners);
            }
        }
        self.give_all(0, head);
    }

    /// Whether one of these owners has to give something up.
    fn any(&self, owners: &[u32; LANES]) -> bool {
        let surplus = |owner: u32| self.surplus.get(owner as usize).copied().unwrap_or(1);
        owners.iter().fold(0, |any, &owner| any | surplus(owner)) > 0
    }

    /// Takes what is to go from the partitions that start at `start`, the last first.
    fn give_all(&mut self, start: usize, owners: &[u32]) {
        for (at, &owner) in owners.iter().enumerate().rev() {
            self.give(start + at, owner);
        }
    }

    /// Takes this partition if it is to go.
    fn give(&mut self, partition: usize, owner: u32) {
        if let Some(surplus) = self.surplus.get_mut(owner as usize) {
            if *surplus == 0 {
                return;
            }
            *surplus -= 1;
        }
        self.left -= 1;
        self.found.push(partition as u32);
    }
}

/// Marks in a block all that have no worker or one of `workers`, the last word first; gives how many words
/// have a mark.
struct Mark<'a> {
    words: &'a [[u32; BITS]],
    workers: [u32; FEW],
    hits: &'a mut [Hit; BLOCK],
}

/// A word in which something is marked, and what.
#[derive(Debug, Clone, Copy, Default)]
struct Hit {
    word: u32,
    lanes: u32,
}

impl Batch for Mark<'_> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let mut marked = 0;
        for (word, owners) in self.words.iter().enumerate().rev() {
            let lanes = lanes_of(owners, self.workers);
            // Written in any case and kept by count: whether there is a mark is not predictable.
            self.hits[marked] = Hit {
                word: word as u32,
                lanes,
            };
            marked += usize::from(lanes != 0);
        }
        marked
    }
}

/// A bit for each owner that has no slot or is among the workers. A choice of two constants without a branch,
/// so that it compiles to vectors.
#[inline(always)]
fn lanes_of(owners: &[u32; BITS], workers: [u32; FEW]) -> u32 {
    let gives = |owner: u32| {
        let workers = workers.iter();
        workers.fold(owner >= GONE, |any, &worker| any | (owner == worker))
    };
    let lanes = owners.iter().enumerate();
    lanes.fold(0, |lanes, (lane, &owner)| {
        lanes | if gives(owner) { 1 << lane } else { 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Slot, Weights};
    use super::*;

    /// One partition after the other, the last first.
    fn one_by_one(previous: &[u32], seats: &[u64], held: &[u32]) -> Vec<u32> {
        let surplus = |(&seats, &held): (&u64, &u32)| u64::from(held).saturating_sub(seats);
        let mut surplus: Vec<u64> = seats.iter().zip(held).map(surplus).collect();
        let mut found = Vec::new();
        for (partition, &owner) in previous.iter().enumerate().rev() {
            match surplus.get_mut(owner as usize) {
                Some(0) => continue,
                Some(surplus) => *surplus -= 1,
                None => {}
            }
            found.push(partition as u32);
        }
        found.reverse();
        found
    }

    #[test]
    fn few_givers_and_many_are_found_alike() {
        let mut rng = fastrand::Rng::with_seed(17);
        for _ in 0..600 {
            let slots = vec![Slot::new(1.0); rng.usize(1..40)];
            let (slotless, givers) = (rng.u32(0..4), rng.usize(0..=slots.len().min(5)));
            // Lengths beside words and blocks, and several blocks.
            let partitions = rng.usize(0..3 * BLOCK * BITS);
            let owner = |_| match rng.u32(0..100) {
                roll if roll < slotless => [NONE, GONE][rng.usize(0..2)],
                _ => rng.u32(0..slots.len() as u32),
            };
            let previous: Vec<u32> = (0..partitions).map(owner).collect();
            let problem = Problem {
                weights: Weights::Even,
                slots: &slots,
                previous: &previous,
            };
            let (held, _) = problem.held().expect("no unknown owners");
            let mut seats: Vec<u64> = held.iter().map(|&held| u64::from(held)).collect();
            for _ in 0..givers {
                let seats = &mut seats[rng.usize(0..slots.len())];
                *seats = rng.u64(0..=*seats + 1);
            }
            let expected = one_by_one(&previous, &seats, &held);
            assert_eq!(released(&problem, &seats, &held), expected);
        }
    }
}
