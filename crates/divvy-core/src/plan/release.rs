//! Which partitions cannot stay when every worker has a number of seats.
//!
//! This and counting are the only passes over all partitions when planning by count, so they decide how long
//! a plan of a million takes. The search goes from the end and stops when all are found: a worker gives up
//! those of the largest index, and if all workers give up a few, these are near the end.

use super::problem::{GONE, NONE, Problem};

/// Owners looked at together.
const LANES: usize = 16;

/// Up to so many owners are searched for by comparison, in vector instructions, instead of by a table.
const FEW: usize = 3;

/// Partitions that have no worker, and of a worker with more than its seats those of the largest index;
/// ascending.
pub(super) fn released(problem: &Problem<'_>, seats: &[u64], held: &[u32]) -> Vec<u32> {
    let mut givers = Givers::new(problem.previous.len(), seats, held);
    let mut found = Vec::with_capacity(givers.left as usize);
    let few = givers.few();
    let (head, chunks) = problem.previous.as_rchunks::<LANES>();
    for (at, owners) in chunks.iter().enumerate().rev() {
        if givers.left == 0 {
            break;
        }
        let start = head.len() + at * LANES;
        match &few {
            Some(few) if any_of(owners, few) => {
                // Only those lanes: where a few of many give, to look at each would be most of the work.
                let mut lanes = lanes_of(owners, few);
                while lanes != 0 {
                    let lane = lanes.ilog2() as usize;
                    lanes ^= 1 << lane;
                    givers.give(start + lane, &owners[lane..=lane], &mut found);
                }
            }
            None if givers.any(owners) => givers.give(start, owners, &mut found),
            _ => {}
        }
    }
    givers.give(0, head, &mut found);
    assert_eq!(givers.left, 0, "every surplus partition was found");
    found.reverse();
    found
}

/// How many partitions each worker has to give up, and how many are left to find, those without a slot included.
struct Givers {
    surplus: Vec<u32>,
    has_slotless: bool,
    left: u64,
}

impl Givers {
    fn new(partitions: usize, seats: &[u64], held: &[u32]) -> Self {
        let surplus = |(&seats, &held): (&u64, &u32)| held.saturating_sub(seats as u32);
        let surplus: Vec<u32> = seats.iter().zip(held).map(surplus).collect();
        let sum = |of: &[u32]| of.iter().map(|&count| u64::from(count)).sum::<u64>();
        let slotless = partitions as u64 - sum(held);
        Self {
            left: sum(&surplus) + slotless,
            has_slotless: slotless > 0,
            surplus,
        }
    }

    /// The owners that give, if they are few.
    fn few(&self) -> Option<[u32; FEW]> {
        let slotless = [NONE, GONE].into_iter().filter(|_| self.has_slotless);
        let workers = 0..self.surplus.len() as u32;
        let mut givers =
            slotless.chain(workers.filter(|&worker| self.surplus[worker as usize] > 0));
        let mut few = [givers.next()?; FEW];
        for (slot, giver) in few[1..].iter_mut().zip(&mut givers) {
            *slot = giver;
        }
        givers.next().is_none().then_some(few)
    }

    /// Whether one of these owners has to give something up.
    fn any(&self, owners: &[u32; LANES]) -> bool {
        let surplus = |owner: u32| self.surplus.get(owner as usize).copied().unwrap_or(1);
        owners.iter().fold(0, |any, &owner| any | surplus(owner)) > 0
    }

    /// Takes what is to go from the partitions that start at `start`, the last first.
    fn give(&mut self, start: usize, owners: &[u32], found: &mut Vec<u32>) {
        for (at, &owner) in owners.iter().enumerate().rev() {
            if let Some(surplus) = self.surplus.get_mut(owner as usize) {
                if *surplus == 0 {
                    continue;
                }
                *surplus -= 1;
            }
            self.left -= 1;
            found.push((start + at) as u32);
        }
    }
}

/// Which of these owners are among the few, a bit each.
fn lanes_of(owners: &[u32; LANES], few: &[u32; FEW]) -> u32 {
    let lanes = owners.iter().enumerate();
    lanes.fold(0, |lanes, (lane, owner)| {
        lanes | u32::from(few.contains(owner)) << lane
    })
}

/// Whether one of these owners is among the few; without branches, so that it compiles to vectors.
fn any_of(owners: &[u32; LANES], few: &[u32; FEW]) -> bool {
    let is_one = |owner: u32| few.iter().fold(false, |any, &giver| any | (owner == giver));
    owners.iter().fold(false, |any, &owner| any | is_one(owner))
}
