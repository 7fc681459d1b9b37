//! One step of a repair, a move or a swap, and what it is worth.
//!
//! Worth is the drop of the sum of *squared* violations, of workers and of zones, over the cost of the step.
//! Squares make one worker far outside count more than several just outside; a sum of plain violations leaves
//! new workers empty when a giant makes the band impossible. A violation is measured against the limits that
//! are aimed at, in units of the mean. The cost is the number of partitions moved, and a little for their load:
//! of steps that help alike the lighter is taken.

use super::ledger::Ledger;
use super::problem::NONE;
use super::shelf::Shelf;
use super::target::{Goal, Limits, Targets};

/// Drops below this are rounding, and could let a repair go in circles.
const GAIN_MIN: f64 = 1e-12;

/// What moving a load of one mean costs, in partitions. Without it heavy partitions are passed on from worker to
/// worker; with more of it, coarse problems take more moves than they need.
const LOAD_COST: f64 = 0.5;

/// How many of a worker's heaviest partitions are tried in swaps with one partner.
const SWAPPED: usize = 24;

/// A partition that goes from one worker to another, perhaps for one that comes back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) give: u32,
    /// The partition that comes back, or `NONE`.
    pub(super) take: u32,
    /// Drop of the squared violations over the cost.
    worth: f64,
    /// The load that changes hands.
    pub(super) net: u64,
}

/// Squared violations of what is aimed at.
#[derive(Debug)]
pub(super) struct Measure<'a> {
    pub(super) aim: &'a Goal,
    /// One over the mean load of each worker.
    workers: Vec<f64>,
    /// One over the mean load of each zone.
    zones: Vec<f64>,
}

impl<'a> Measure<'a> {
    pub(super) fn new(ledger: &Ledger<'_>, targets: &Targets, aim: &'a Goal) -> Self {
        // What the band is around: beside a giant the mean would make the violations of all others vanish.
        let level = if targets.rate > 0.0 {
            targets.rate
        } else {
            targets.mean
        };
        let scale = |units: u64| 1.0 / (level * units.max(1) as f64);
        let zone_units = |zone: &Vec<u32>| {
            zone.iter()
                .map(|&worker| targets.units[worker as usize])
                .sum()
        };
        Self {
            aim,
            workers: targets.units.iter().map(|&unit| scale(unit)).collect(),
            zones: ledger
                .zones
                .members
                .iter()
                .map(|zone| scale(zone_units(zone)))
                .collect(),
        }
    }

    fn worker(&self, worker: u32, load: u64) -> f64 {
        let violation =
            self.aim.workers[worker as usize].excess(load) as f64 * self.workers[worker as usize];
        violation * violation
    }

    fn zone(&self, zone: u32, load: u64) -> f64 {
        let violation =
            self.aim.zones[zone as usize].excess(load) as f64 * self.zones[zone as usize];
        violation * violation
    }

    /// A load in units of the worker's mean.
    fn in_means(&self, worker: u32, load: u64) -> f64 {
        load as f64 * self.workers[worker as usize]
    }

    /// How far a worker is outside `limits`, in units of its mean.
    pub(super) fn outside(&self, worker: u32, limits: Limits, load: u64) -> f64 {
        self.in_means(worker, limits.excess(load))
    }

    /// How far a zone is outside `limits`, in units of its mean.
    pub(super) fn zone_outside(&self, zone: usize, limits: Limits, load: u64) -> f64 {
        limits.excess(load) as f64 * self.zones[zone]
    }

    /// The drop when `net` goes from one worker to another.
    fn gain(&self, ledger: &Ledger<'_>, from: u32, to: u32, net: u64) -> f64 {
        let (from_load, to_load) = (ledger.loads[from as usize], ledger.loads[to as usize]);
        let before = self.worker(from, from_load) + self.worker(to, to_load);
        let after = self.worker(from, from_load - net) + self.worker(to, to_load + net);
        let (from_zone, to_zone) = (ledger.zones.of[from as usize], ledger.zones.of[to as usize]);
        if from_zone == to_zone {
            return before - after;
        }
        let (from_load, to_load) = (
            ledger.zone_loads[from_zone as usize],
            ledger.zone_loads[to_zone as usize],
        );
        let zones_before = self.zone(from_zone, from_load) + self.zone(to_zone, to_load);
        let zones_after = self.zone(from_zone, from_load - net) + self.zone(to_zone, to_load + net);
        before - after + (zones_before - zones_after)
    }
}

/// Loads that may change hands: at least `enough`, at most `most`. Empty if `enough` is larger.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) enough: u64,
    pub(super) most: u64,
}

impl Window {
    /// What brings both sides to where they aim.
    pub(super) fn new(giver: Limits, gives: u64, taker: Limits, takes: u64) -> Self {
        Self {
            enough: gives
                .saturating_sub(giver.hi)
                .max(taker.lo.saturating_sub(takes)),
            most: gives
                .saturating_sub(giver.lo)
                .min(taker.hi.saturating_sub(takes)),
        }
    }
}

/// Looks for the best step, pair by pair.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) ledger: &'a Ledger<'a>,
    pub(super) shelf: &'a Shelf<'a>,
    pub(super) targets: &'a Targets,
    pub(super) measure: &'a Measure<'a>,
    pub(super) best: Option<Step>,
}

impl<'a> Search<'a> {
    /// Both workers to where they aim.
    pub(super) fn window(&self, from: u32, to: u32) -> Window {
        let (from, to) = (from as usize, to as usize);
        let limits = &self.measure.aim.workers;
        Window::new(
            limits[from],
            self.ledger.loads[from],
            limits[to],
            self.ledger.loads[to],
        )
    }

    /// Tries the moves of one partition whose weight is next to an end or the middle of the window. The worth
    /// is concave in the weight, with its top in the window or, if that is empty, between its ends.
    pub(super) fn try_moves(&mut self, from: u32, to: u32, window: Window) {
        if !self.ledger.has_room(to) {
            return;
        }
        let list = self.givable(from, to);
        let Window { enough, most } = window;
        let mut last = usize::MAX;
        for weight in [enough, enough.midpoint(most), most.saturating_add(1)] {
            let at = list.partition_point(|&partition| self.weight(partition) < weight);
            if at == last {
                continue;
            }
            last = at;
            for &partition in &list[at.saturating_sub(1)..list.len().min(at + 1)] {
                self.consider(from, to, partition, NONE);
            }
        }
    }

    /// Tries swaps: each of the heaviest partitions for the one that leaves just enough.
    pub(super) fn try_swaps(&mut self, from: u32, to: u32, window: Window) {
        let gives = self.shelf.list(from);
        let takes = self.shelf.list(to);
        let (Some(&heaviest), false) = (gives.last(), takes.is_empty()) else {
            return;
        };
        let reach = self.weight(heaviest).min(window.enough.max(window.most));
        let reach_gain = self
            .measure
            .gain(self.ledger, from, to, reach.min(window.enough.max(1)));
        if self.best.is_some_and(|best| best.worth * 2.0 >= reach_gain) {
            return;
        }
        let mut last = u64::MAX;
        for &give in gives.iter().rev().take(SWAPPED) {
            let weight = self.weight(give);
            if weight == last {
                continue;
            }
            last = weight;
            let limit = weight.saturating_sub(window.enough);
            let at = takes.partition_point(|&partition| self.weight(partition) <= limit);
            for &take in &takes[at.saturating_sub(1)..takes.len().min(at + 1)] {
                if self.weight(take) < weight && self.may_swap(to, give, take) {
                    self.consider(from, to, give, take);
                }
            }
        }
    }

    fn weight(&self, partition: u32) -> u64 {
        self.ledger.weights[partition as usize]
    }

    fn is_extreme(&self, partition: u32) -> bool {
        self.targets.is_extreme(self.weight(partition))
    }

    fn is_full_of_extremes(&self, worker: u32) -> bool {
        self.ledger.extremes[worker as usize] >= self.targets.extreme_limits[worker as usize]
    }

    /// What one worker may give to another: no extremes to one that has its share of them.
    fn givable(&self, from: u32, to: u32) -> &'a [u32] {
        let list = self.shelf.list(from);
        if !self.is_full_of_extremes(to) {
            return list;
        }
        &list[..list.partition_point(|&partition| !self.is_extreme(partition))]
    }

    fn may_swap(&self, to: u32, give: u32, take: u32) -> bool {
        !self.is_full_of_extremes(to) || !self.is_extreme(give) || self.is_extreme(take)
    }

    /// Keeps the step if it is worth more than the best so far, or as much with less load.
    fn consider(&mut self, from: u32, to: u32, give: u32, take: u32) {
        let (given, taken) = match take {
            NONE => (self.weight(give), 0),
            take => (self.weight(give), self.weight(take)),
        };
        let net = given - taken;
        let partitions = if take == NONE { 1.0 } else { 2.0 };
        let cost = partitions + LOAD_COST * self.measure.in_means(to, given + taken);
        let gain = self.measure.gain(self.ledger, from, to, net);
        let worth = gain / cost;
        let is_better = match self.best {
            None => gain > GAIN_MIN,
            Some(best) => worth > best.worth || (worth == best.worth && net < best.net),
        };
        if is_better {
            self.best = Some(Step {
                from,
                to,
                give,
                take,
                worth,
                net,
            });
        }
    }
}
