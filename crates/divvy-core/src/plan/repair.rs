//! Brings workers and zones that are outside their limits back in, with few moves.
//!
//! The worst is repaired first, by the step that is worth most for its cost ([`super::step`]); swaps
//! are tried where a single move does not suffice. What a reader would get wrong: a repair is triggered by
//! one set of limits and aims at a narrower one, but whoever is inside the trigger is left alone, even if
//! outside the aim.
//!
//! It ends because every step lowers the violations by more than rounding, and shedding extremes lowers their
//! excess, which no other step raises. It ends with a round that changed nothing, so that a repair of the result
//! goes through the same round: that is why planning twice moves nothing, also where the band cannot be reached.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ledger::Ledger;
use super::outcome::Cause;
use super::problem::NONE;
use super::shelf::{ALL, Shelf, order_of_zone};
use super::step::{Measure, Search, Step, Window};
use super::target::{Goal, Limits, Targets};

/// Partners tried for moves, and for swaps: the right partner for a swap may be anywhere.
const NEAR: usize = 6;
const FAR: usize = 128;

/// Zones that are asked to help one that is outside.
const HELPERS: usize = 3;

/// Repairs whatever is outside `trigger`, aiming at `aim`.
pub(super) fn repair(ledger: &mut Ledger<'_>, targets: &Targets, trigger: &Goal, aim: &Goal) {
    if is_inside(ledger, targets, trigger) {
        return;
    }
    let mut repair = Repair {
        shelf: Shelf::new(ledger, targets, aim),
        measure: Measure::new(ledger, targets, aim),
        targets,
        trigger,
    };
    loop {
        let shed = repair.shed_extremes(ledger);
        let workers = repair.repair_workers(ledger);
        let zones = repair.repair_zones(ledger);
        if !(shed || workers || zones) {
            break;
        }
    }
}

fn is_inside(ledger: &Ledger<'_>, targets: &Targets, trigger: &Goal) -> bool {
    let inside = |limits: &[Limits], loads: &[u64]| {
        limits
            .iter()
            .zip(loads)
            .all(|(limits, &load)| limits.contains(load))
    };
    let mut extremes = ledger.extremes.iter().zip(&targets.extreme_limits);
    inside(&trigger.workers, &ledger.loads)
        && inside(&trigger.zones, &ledger.zone_loads)
        && extremes.all(|(extremes, limit)| extremes <= limit)
}

struct Repair<'a> {
    shelf: Shelf<'a>,
    measure: Measure<'a>,
    targets: &'a Targets,
    trigger: &'a Goal,
}

impl Repair<'_> {
    /// Moves extremes away from workers that have more than their share of them, the lightest extreme first.
    fn shed_extremes(&mut self, ledger: &mut Ledger<'_>) -> bool {
        let mut changed = false;
        for worker in 0..ledger.slots.len() as u32 {
            while ledger.extremes[worker as usize] > self.targets.extreme_limits[worker as usize] {
                let list = self.shelf.list(worker);
                let is_normal =
                    |&partition: &u32| !self.targets.is_extreme(ledger.weights[partition as usize]);
                let extreme = list.get(list.partition_point(is_normal)).copied();
                let may_take = |&to: &u32| {
                    ledger.extremes[to as usize] < self.targets.extreme_limits[to as usize]
                };
                let Some(taker) = self.shelf.lightest_open(ALL).find(may_take) else {
                    // Nobody takes an extreme, whoever it comes from.
                    return changed;
                };
                let Some(extreme) = extreme else {
                    break;
                };
                ledger.note(extreme, Cause::Extremes, None);
                self.shelf.shift(ledger, extreme, taker);
                changed = true;
            }
        }
        changed
    }

    /// Repairs workers, the worst first, until all are inside or none of those outside can be helped.
    fn repair_workers(&mut self, ledger: &mut Ledger<'_>) -> bool {
        let mut changed = false;
        let mut worst = BinaryHeap::new();
        for worker in 0..ledger.slots.len() as u32 {
            worst.extend(self.violation(ledger, worker));
        }
        while let Some(entry) = worst.pop() {
            let (_, Reverse(worker)) = entry;
            let current = self.violation(ledger, worker);
            if current != Some(entry) {
                worst.extend(current);
                continue;
            }
            let is_over = ledger.loads[worker as usize] > self.trigger.workers[worker as usize].hi;
            let Some(step) = self.step_for(ledger, worker, is_over) else {
                continue;
            };
            let cause = if is_over { Cause::Over } else { Cause::Under };
            self.take(ledger, step, cause);
            changed = true;
            for touched in [step.from, step.to] {
                worst.extend(self.violation(ledger, touched));
            }
        }
        changed
    }

    fn take(&mut self, ledger: &mut Ledger<'_>, step: Step, cause: Cause) {
        ledger.note(step.give, cause, None);
        self.shelf.shift(ledger, step.give, step.to);
        if step.take != NONE {
            ledger.note(step.take, cause, None);
            self.shelf.shift(ledger, step.take, step.from);
        }
    }

    /// A worker outside the trigger, ordered by how far.
    fn violation(&self, ledger: &Ledger<'_>, worker: u32) -> Option<(u64, Reverse<u32>)> {
        let load = ledger.loads[worker as usize];
        let outside = self
            .measure
            .outside(worker, self.trigger.workers[worker as usize], load);
        (outside > 0.0).then(|| (outside.to_bits(), Reverse(worker)))
    }

    /// The best step that helps this worker.
    fn step_for(&self, ledger: &Ledger<'_>, worker: u32, is_over: bool) -> Option<Step> {
        let pair = |partner: u32| {
            if is_over {
                (worker, partner)
            } else {
                (partner, worker)
            }
        };
        let mut search = self.search(ledger);
        let near: Vec<u32> = if is_over {
            let open = self.shelf.lightest_open(ALL);
            open.filter(|&other| other != worker).take(NEAR).collect()
        } else {
            self.partners(ledger, worker, is_over, NEAR)
        };
        for partner in near {
            let (from, to) = pair(partner);
            let window = search.window(from, to);
            search.try_moves(from, to, window);
        }
        if search.best.is_some_and(|step| self.suffices(ledger, step)) {
            return search.best;
        }
        for partner in self.partners(ledger, worker, is_over, FAR) {
            let (from, to) = pair(partner);
            let window = search.window(from, to);
            search.try_swaps(from, to, window);
        }
        search.best
    }

    /// Who could take from, or give to, this worker.
    fn partners(&self, ledger: &Ledger<'_>, worker: u32, is_over: bool, count: usize) -> Vec<u32> {
        let others = |&other: &u32| other != worker;
        if is_over {
            return self
                .shelf
                .lightest(ALL)
                .filter(others)
                .take(count)
                .collect();
        }
        let limits = self.measure.aim.workers[worker as usize];
        let load = ledger.loads[worker as usize];
        let enough = limits.lo.saturating_sub(load);
        let too_much = limits.hi.saturating_sub(load).saturating_add(1);
        let sparing = self.shelf.sparing(ALL, enough, too_much).filter(others);
        sparing
            .chain(self.shelf.heaviest(ALL).filter(others).take(count))
            .collect()
    }

    /// Whether both workers are inside the trigger after this step.
    fn suffices(&self, ledger: &Ledger<'_>, step: Step) -> bool {
        let (from, to) = (step.from as usize, step.to as usize);
        self.trigger.workers[from].contains(ledger.loads[from] - step.net)
            && self.trigger.workers[to].contains(ledger.loads[to] + step.net)
    }

    /// Repairs zones, the worst first, until all are inside or none of those outside can be helped.
    fn repair_zones(&mut self, ledger: &mut Ledger<'_>) -> bool {
        let mut changed = false;
        if ledger.zones.len() > 1 {
            while let Some(step) = self.zone_step(ledger) {
                self.take(ledger, step, Cause::Zone);
                changed = true;
            }
        }
        changed
    }

    /// The best step between the worst zone that can be helped and the one that helps it most.
    fn zone_step(&self, ledger: &Ledger<'_>) -> Option<Step> {
        let pairs = self.zone_pairs(ledger);
        pairs
            .into_iter()
            .find_map(|(from, to)| self.step_between(ledger, from, to))
    }

    /// The best step from one zone to another.
    fn step_between(&self, ledger: &Ledger<'_>, from: usize, to: usize) -> Option<Step> {
        let aim = &self.measure.aim.zones;
        let loads = &ledger.zone_loads;
        let window = Window::new(aim[from], loads[from], aim[to], loads[to]);
        let (from_order, to_order) = (order_of_zone(from), order_of_zone(to));
        let too_much = window.most.saturating_add(1);
        let sparing = self.shelf.sparing(from_order, window.enough, too_much);
        let givers: Vec<u32> = sparing
            .chain(self.shelf.heaviest(from_order).take(NEAR))
            .collect();
        let takers: Vec<u32> = self.shelf.lightest_open(to_order).take(NEAR).collect();
        let partners: Vec<u32> = self.shelf.lightest(to_order).take(NEAR).collect();
        let pairs = |takers: &[u32]| -> Vec<(u32, u32)> {
            let with_all = |&from: &u32| takers.iter().map(move |&to| (from, to));
            givers.iter().flat_map(with_all).collect()
        };
        let mut search = self.search(ledger);
        for (from, to) in pairs(&takers) {
            let most = window.most.min(search.window(from, to).most);
            let enough = window.enough.min(most);
            search.try_moves(from, to, Window { enough, most });
        }
        let suffices = |step: Step| {
            let zones = &self.trigger.zones;
            let is_inside = zones[from].contains(loads[from] - step.net)
                && zones[to].contains(loads[to] + step.net);
            is_inside && self.suffices(ledger, step)
        };
        if !search.best.is_some_and(suffices) {
            for (from, to) in pairs(&partners) {
                search.try_swaps(from, to, window);
            }
        }
        search.best
    }

    /// Pairs of a zone to give and a zone to take, the most promising first: the zones outside by how far, each
    /// with the lightest or heaviest few of the others.
    fn zone_pairs(&self, ledger: &Ledger<'_>) -> Vec<(usize, usize)> {
        let zones =
            || (0..ledger.zones.len()).filter(|&zone| !ledger.zones.members[zone].is_empty());
        let outside = |zone: usize| {
            let load = ledger.zone_loads[zone];
            self.measure
                .zone_outside(zone, self.trigger.zones[zone], load)
        };
        let mut violators: Vec<usize> = zones().filter(|&zone| outside(zone) > 0.0).collect();
        violators.sort_by(|&a, &b| outside(b).total_cmp(&outside(a)).then(a.cmp(&b)));
        if violators.is_empty() {
            return Vec::new();
        }
        let aim = &self.measure.aim.zones;
        let level = |zone: usize| {
            let middle = aim[zone].lo.midpoint(aim[zone].hi);
            (ledger.zone_loads[zone] as f64 - middle as f64) / middle.max(1) as f64
        };
        let mut by_level: Vec<usize> = zones().collect();
        by_level.sort_by(|&a, &b| level(a).total_cmp(&level(b)).then(a.cmp(&b)));
        let mut pairs = Vec::new();
        for zone in violators {
            let others = || by_level.iter().copied().filter(|&other| other != zone);
            if ledger.zone_loads[zone] > aim[zone].hi {
                pairs.extend(others().take(HELPERS).map(|lighter| (zone, lighter)));
            } else {
                pairs.extend(others().rev().take(HELPERS).map(|heavier| (heavier, zone)));
            }
        }
        pairs
    }

    fn search<'s>(&'s self, ledger: &'s Ledger<'s>) -> Search<'s> {
        Search {
            ledger,
            shelf: &self.shelf,
            targets: self.targets,
            measure: &self.measure,
            best: None,
        }
    }
}
