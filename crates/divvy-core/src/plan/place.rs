//! Placing what has no owner, by preference under limits.
//!
//! Extremes go first, heaviest first, to the lightest worker that may own another. The others go to the
//! worker they hash to while it stays inside its limits, else to the lightest. What a reader would get wrong:
//! preference ends as soon as the weight that is left is needed to lift workers up to their lower limit.
//! Placing there costs no move; repairing afterwards would.

use super::decision::heavier;
use super::ledger::Ledger;
use super::lightest::Lightest;
use super::outcome::{Cause, Reason, Rejection};
use super::problem::{NONE, Slot};
use super::target::{Goal, Targets};
use crate::worker::Veto;

/// How many workers are compared for an extreme when workers have different weights.
const COMPARED: usize = 16;

/// A partition that has no owner. It carries its weight because a pool is sorted and walked by weight, which is
/// any order in memory: looked up, every weight would be waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unplaced {
    pub(super) weight: u64,
    pub(super) partition: u32,
    /// Why it has to be placed.
    pub(super) cause: Cause,
}

/// Places partitions that have no owner; `pool` is sorted heaviest first.
pub(super) fn place(
    ledger: &mut Ledger<'_>,
    targets: &Targets,
    goal: &Goal,
    pool: &[Unplaced],
    mut preferred: impl FnMut(u32) -> u32,
) {
    let extremes = pool.partition_point(|unplaced| targets.is_extreme(unplaced.weight));
    let (extremes, others) = pool.split_at(extremes);
    let mut places = Places::new(ledger, targets);
    for unplaced in extremes {
        let worker = places.lightest_for(ledger, unplaced.weight);
        ledger.note(unplaced.partition, unplaced.cause, None);
        ledger.seat(unplaced, worker, targets);
    }
    let mut places = Places::new(ledger, targets);
    places.for_extremes = false;
    let mut left: u64 = others.iter().map(|unplaced| unplaced.weight).sum();
    let mut lacking: u64 = lacking(ledger, goal);
    for unplaced in others {
        let weight = unplaced.weight;
        left -= weight;
        let first = preferred(unplaced.partition);
        let rejected = reject(ledger, goal, weight, first, left >= lacking);
        let worker = match rejected {
            None => first,
            Some(_) => places.lightest_for(ledger, weight),
        };
        let lo = goal.workers[worker as usize].lo;
        lacking -= lo.saturating_sub(ledger.loads[worker as usize]).min(weight);
        let rejected = rejected.filter(|_| worker != first);
        let rejected = rejected.map(|reason| Rejection {
            worker: first,
            reason,
        });
        ledger.note(unplaced.partition, unplaced.cause, rejected);
        ledger.seat(unplaced, worker, targets);
    }
}

/// Why a worker did not get a partition that had no owner and went to `taker`, in the state before.
pub(super) fn passed_over(
    ledger: &Ledger<'_>,
    targets: &Targets,
    weight: u64,
    worker: u32,
    taker: u32,
) -> Veto {
    if !ledger.has_room(worker) {
        return Veto::Full;
    }
    let is_extreme = targets.is_extreme(weight);
    let has_its_extremes = |worker: u32| {
        let worker = worker as usize;
        ledger.extremes[worker] >= targets.extreme_limits[worker]
    };
    // Where everybody has, the limit is ignored.
    if is_extreme && has_its_extremes(worker) && !has_its_extremes(taker) {
        return Veto::Extremes;
    }
    let zone_of = |worker: u32| ledger.zones.of[worker as usize];
    let (zone, taking) = (zone_of(worker), zone_of(taker));
    if zone != taking {
        let members = ledger.zones.members.iter();
        let shares: Vec<_> = members
            .map(|zone| zone_share(ledger, targets, zone))
            .collect();
        let level = |zone: u32| (zone_level(ledger, &shares, zone), zone);
        return heavier(
            level(zone),
            level(taking),
            [Veto::HeavierZone, Veto::LaterZone],
        );
    }
    // Extremes are compared by what a worker would have with them.
    let added = if is_extreme { weight } else { 0 };
    let level = |worker: u32| {
        let load = ledger.loads[worker as usize] + added;
        (load as f64 / targets.units[worker as usize] as f64, worker)
    };
    heavier(level(worker), level(taker), [Veto::Heavier, Veto::Later])
}

/// What all workers together are short of their lower limits.
fn lacking(ledger: &Ledger<'_>, goal: &Goal) -> u64 {
    let pairs = goal.workers.iter().zip(&ledger.loads);
    pairs
        .map(|(limits, &load)| limits.lo.saturating_sub(load))
        .sum()
}

/// Why the preferred worker cannot have a partition of this weight, if it cannot.
fn reject(
    ledger: &Ledger<'_>,
    goal: &Goal,
    weight: u64,
    worker: u32,
    has_spare: bool,
) -> Option<Reason> {
    let index = worker as usize;
    if !ledger.slots.get(index).is_some_and(Slot::is_eligible) {
        return Some(Reason::Ineligible);
    }
    if !ledger.has_room(worker) {
        return Some(Reason::Full);
    }
    if ledger.loads[index] + weight > goal.workers[index].hi {
        return Some(Reason::OverBand);
    }
    let zone = ledger.zones.of[index] as usize;
    if ledger.zone_loads[zone] + weight > goal.zones[zone].hi {
        return Some(Reason::OverZone);
    }
    let is_lacking = ledger.loads[index] < goal.workers[index].lo;
    (!has_spare && !is_lacking).then_some(Reason::Reserved)
}

/// Where to place next: the lightest zone, and in it the lightest worker.
struct Places<'a> {
    targets: &'a Targets,
    zones: Lightest,
    workers: Vec<Lightest>,
    /// Units of each zone's workers without giants, and the giants' weight.
    zone_shares: Vec<(f64, u64)>,
    is_uniform: bool,
    for_extremes: bool,
}

impl<'a> Places<'a> {
    fn new(ledger: &Ledger<'_>, targets: &'a Targets) -> Self {
        let members = &ledger.zones.members;
        let mut places = Self {
            targets,
            zones: Lightest::default(),
            workers: Vec::new(),
            zone_shares: members
                .iter()
                .map(|zone| zone_share(ledger, targets, zone))
                .collect(),
            is_uniform: true,
            for_extremes: true,
        };
        let mut first = None;
        for (zone, workers) in members.iter().enumerate() {
            let mut lightest = Lightest::default();
            for &worker in workers {
                lightest.push(level(ledger, targets, worker), worker);
                let unit = targets.units[worker as usize];
                places.is_uniform &= *first.get_or_insert(unit) == unit;
            }
            places.workers.push(lightest);
            let level = zone_level(ledger, &places.zone_shares, zone as u32);
            places.zones.push(level, zone as u32);
        }
        places
    }

    /// The worker to place this weight on. Extremes ignore their limit only when no worker below it has room.
    fn lightest_for(&mut self, ledger: &Ledger<'_>, weight: u64) -> u32 {
        loop {
            if let Some(worker) = self.next(ledger, weight) {
                return worker;
            }
            assert!(self.for_extremes, "the caps together hold all partitions");
            *self = Self::new(ledger, self.targets);
            self.for_extremes = false;
        }
    }

    fn next(&mut self, ledger: &Ledger<'_>, weight: u64) -> Option<u32> {
        let targets = self.targets;
        let (zone_shares, for_extremes) = (&self.zone_shares, self.for_extremes);
        let zone_level = |zone: u32| zone_level(ledger, zone_shares, zone);
        let level = |worker: u32| level(ledger, targets, worker);
        let is_open = |worker: u32| {
            let extremes = ledger.extremes[worker as usize];
            ledger.has_room(worker)
                && !(for_extremes && extremes >= targets.extreme_limits[worker as usize])
        };
        let mut full = Vec::new();
        loop {
            let zone = self.zones.peek(zone_level, |zone| !full.contains(&zone))?;
            let queue = &mut self.workers[zone as usize];
            let Some(lightest) = queue.peek(level, is_open) else {
                full.push(zone);
                continue;
            };
            if self.is_uniform || !for_extremes {
                return Some(lightest);
            }
            return Some(queue.best_of(COMPARED, level, is_open, |worker| {
                let load = ledger.loads[worker as usize] + weight;
                load as f64 / targets.units[worker as usize] as f64
            }));
        }
    }
}

fn level(ledger: &Ledger<'_>, targets: &Targets, worker: u32) -> f64 {
    ledger.loads[worker as usize] as f64 / targets.units[worker as usize] as f64
}

/// Level of a zone without its giants; a zone of nothing but hosts comes last.
fn zone_level(ledger: &Ledger<'_>, zone_shares: &[(f64, u64)], zone: u32) -> f64 {
    let (units, hosted) = zone_shares[zone as usize];
    if units == 0.0 {
        return f64::INFINITY;
    }
    ledger.zone_loads[zone as usize].saturating_sub(hosted) as f64 / units
}

fn zone_share(ledger: &Ledger<'_>, targets: &Targets, members: &[u32]) -> (f64, u64) {
    let mut share = (0.0, 0);
    for &worker in members {
        match targets.giant_of[worker as usize] {
            NONE => share.0 += targets.units[worker as usize] as f64,
            giant => share.1 += ledger.weights[giant as usize],
        }
    }
    share
}
