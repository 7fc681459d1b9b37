//! Even counts, zones first, with the fewest moves.
//!
//! A zone's exact share is in proportion to the weight of its workers together, limited by their caps
//! together; a zone owns its share rounded down or up. Inside a zone the same holds for its workers, of what
//! the zone owns. What a reader would get wrong: this does not keep copies of a partition in different zones
//! (there are no copies); it keeps the loss of a zone, and the load on one, in proportion.
//!
//! Given its zone's seats, a zone's workers are independent of the other zones. So the fewest moves are found
//! by giving the larger zone shares where they let most partitions stay, and need no search. For weighted
//! partitions see
//! [`zoned_banded`](super::zoned_banded).
//!
//! Guarantees: the number of moves is the minimum over all assignments balanced in this sense, and the
//! certificate has the minimum without zones beside it. Does not guarantee: that the counts of workers in
//! different zones differ by at most one.

use super::balanced::{caps, fill, finish, gain, over_cause};
use super::outcome::{Cause, Plan};
use super::problem::{PlanError, Problem};
use super::share::{Share, seats, shares, units};
use super::zone::Zones;

/// Plans even counts over zones, then over the workers of a zone; `preferred` is as in
/// [`balanced`](fn@super::balanced).
///
/// # Errors
/// As [`balanced`](fn@super::balanced).
pub fn zoned(problem: &Problem<'_>, preferred: impl FnMut(u32) -> u32) -> Result<Plan, PlanError> {
    problem.validate()?;
    let (held, new) = problem.held()?;
    let total = problem.previous.len() as u64;
    let zones = Zones::new(problem.slots);
    let members = Members::new(problem, &zones, &held);
    let zone_seats = members.zone_seats(total);

    let mut worker_seats = vec![0; problem.slots.len()];
    let mut worker_shares = shares(0, &members.units, &members.caps);
    for (zone, workers) in zones.members.iter().enumerate() {
        let (shares, seats) = members.divide(workers, zone_seats[zone]);
        for (index, &worker) in workers.iter().enumerate() {
            worker_seats[worker as usize] = seats[index];
            worker_shares[worker as usize] = shares[index];
        }
    }
    let zone_held: Vec<u64> = (0..zones.len())
        .map(|zone| members.zone_held(zone))
        .collect();
    let cause = |worker: usize| {
        let zone = zones.of[worker] as usize;
        let fair = if zone_held[zone] > zone_seats[zone] {
            Cause::Zone
        } else {
            Cause::Under
        };
        over_cause(
            &problem.slots[worker],
            &worker_shares[worker],
            held[worker],
            fair,
        )
    };
    let (owners, moves) = fill(problem, &worker_seats, &held, cause, preferred);

    let moved_least = |seats: &[u64]| total - u64::from(new) - kept(seats, &held);
    let flat_shares = shares(total, &members.units, &members.caps);
    let flat = seats(total, &flat_shares, |worker| {
        gain(&held, &flat_shares, worker)
    });
    let counts = worker_seats.iter().map(|&seats| seats as u32).collect();
    let bound = moved_least(&worker_seats) as u32;
    let mut plan = finish(problem, owners, counts, moves, bound);
    plan.certificate.flat_bound = moved_least(&flat) as u32;
    Ok(plan)
}

/// The most partitions that may stay when these are the seats.
fn kept(seats: &[u64], held: &[u32]) -> u64 {
    let pairs = seats.iter().zip(held);
    pairs
        .map(|(&seats, &held)| seats.min(u64::from(held)))
        .sum()
}

/// The workers as the zones see them.
struct Members<'a> {
    zones: &'a Zones,
    held: &'a [u32],
    units: Vec<u64>,
    caps: Vec<u64>,
}

impl<'a> Members<'a> {
    fn new(problem: &Problem<'_>, zones: &'a Zones, held: &'a [u32]) -> Self {
        Self {
            zones,
            held,
            units: units(problem.slots),
            caps: caps(problem.slots),
        }
    }

    /// How many partitions each zone gets.
    fn zone_seats(&self, total: u64) -> Vec<u64> {
        let sum =
            |of: &[u64], zone: &Vec<u32>| zone.iter().map(|&worker| of[worker as usize]).sum();
        let zone_units: Vec<u64> = self
            .zones
            .members
            .iter()
            .map(|zone| sum(&self.units, zone))
            .collect();
        let zone_caps: Vec<u64> = self
            .zones
            .members
            .iter()
            .map(|zone| sum(&self.caps, zone))
            .collect();
        let zone_shares = shares(total, &zone_units, &zone_caps);
        seats(total, &zone_shares, |zone| {
            let workers = &self.zones.members[zone];
            let share = zone_shares[zone];
            // May be negative: one seat more can raise the lower share of many workers who hold little, at
            // the cost of workers who hold much.
            self.zone_kept(workers, share.hi) - self.zone_kept(workers, share.lo)
        })
    }

    /// Shares and seats of a zone's workers, in their order.
    fn divide(&self, workers: &[u32], total: u64) -> (Vec<Share>, Vec<u64>) {
        let pick = |of: &[u64]| -> Vec<u64> {
            workers.iter().map(|&worker| of[worker as usize]).collect()
        };
        let held: Vec<u32> = workers
            .iter()
            .map(|&worker| self.held[worker as usize])
            .collect();
        let shares = shares(total, &pick(&self.units), &pick(&self.caps));
        let seats = seats(total, &shares, |index| gain(&held, &shares, index));
        (shares, seats)
    }

    /// The most partitions that may stay in a zone of so many.
    fn zone_kept(&self, workers: &[u32], total: u64) -> i64 {
        let (_, seats) = self.divide(workers, total);
        let pairs = workers.iter().zip(seats);
        let kept = pairs.map(|(&worker, seats)| seats.min(u64::from(self.held[worker as usize])));
        kept.sum::<u64>() as i64
    }

    fn zone_held(&self, zone: usize) -> u64 {
        let workers = &self.zones.members[zone];
        workers
            .iter()
            .map(|&worker| u64::from(self.held[worker as usize]))
            .sum()
    }
}
