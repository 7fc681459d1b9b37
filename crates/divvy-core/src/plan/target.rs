//! What every worker should carry: the target, the giants it is water-filled around, and the limits on both
//! sides.
//!
//! A *giant* is a partition that exceeds the outer band of the largest worker still free, alone. It gets a
//! worker of its own (its *host*), both are set aside, and the rest is averaged over the other workers. That
//! may make the next partition a giant, so giants are found heaviest first. The last free worker never
//! becomes a host: what is left to average includes the partition in question.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::band::{Band, Edges};
use super::problem::{NONE, Slot};
use super::share::units;
use super::zone::Zones;

/// The loads a worker or zone may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) lo: u64,
    pub(super) hi: u64,
}

impl Limits {
    fn new(edges: Edges, share: f64) -> Self {
        Self {
            lo: (edges.lo * share).ceil() as u64,
            hi: (edges.hi * share).floor() as u64,
        }
    }

    pub(super) fn contains(&self, load: u64) -> bool {
        (self.lo..=self.hi).contains(&load)
    }

    /// How far a load is outside.
    pub(super) fn excess(&self, load: u64) -> u64 {
        load.saturating_sub(self.hi)
            .max(self.lo.saturating_sub(load))
    }
}

/// Limits for the workers and the zones that go together.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) workers: Vec<Limits>,
    pub(super) zones: Vec<Limits>,
}

/// The targets of one problem.
#[derive(Debug)]
pub(super) struct Targets {
    /// What is promised and what is repaired.
    pub(super) outer: Goal,
    /// What repairs aim at.
    pub(super) warm: Goal,
    /// What a cold start aims at.
    pub(super) rest: Goal,
    /// Giants and their hosts.
    pub(super) giants: Vec<(u32, u32)>,
    /// The giant of each worker, or `NONE`.
    pub(super) giant_of: Vec<u32>,
    /// Weight of each worker in integer units; 0 if it takes nothing.
    pub(super) units: Vec<u64>,
    /// Load of one unit of worker weight that the band is around.
    pub(super) rate: f64,
    /// The same without giants set aside.
    pub(super) mean: f64,
    /// The heaviest weight that is not extreme.
    pub(super) extreme_above: u64,
    pub(super) extremes: u32,
    /// How many extremes each worker may own.
    pub(super) extreme_limits: Vec<u32>,
}

impl Targets {
    pub(super) fn new(
        weights: &[u64],
        slots: &[Slot],
        zones: &Zones,
        band: &Band,
        kept: Kept<'_>,
    ) -> Self {
        let total: u64 = weights.iter().sum();
        let units = units(slots);
        let mut free = Free::new(&units, kept, total);
        let mean = free.rate();
        let (giants, rate) = free.seat_giants(weights, band);
        let mut giant_of = vec![NONE; slots.len()];
        for &(giant, host) in &giants {
            giant_of[host as usize] = giant;
        }
        let share = |worker: usize| rate * units[worker] as f64;
        let goal = |edges: Edges, zone_edges: Edges| {
            let worker_limits = |worker: usize| match giant_of[worker] {
                _ if !slots[worker].is_eligible() => Limits { lo: 0, hi: 0 },
                NONE => Limits::new(edges, share(worker)),
                giant => Limits {
                    lo: 0,
                    hi: weights[giant as usize],
                },
            };
            let zone_limits = |members: &Vec<u32>| {
                let hosts = members.iter().map(|&worker| giant_of[worker as usize]);
                let hosted: u64 = hosts
                    .filter(|&giant| giant != NONE)
                    .map(|giant| weights[giant as usize])
                    .sum();
                let others = members
                    .iter()
                    .filter(|&&worker| giant_of[worker as usize] == NONE);
                let limits = Limits::new(
                    zone_edges,
                    others.map(|&worker| share(worker as usize)).sum(),
                );
                Limits {
                    lo: limits.lo.saturating_add(hosted),
                    hi: limits.hi.saturating_add(hosted),
                }
            };
            Goal {
                workers: (0..slots.len()).map(worker_limits).collect(),
                zones: zones.members.iter().map(zone_limits).collect(),
            }
        };
        let extreme_above = (band.extreme * total as f64 / weights.len().max(1) as f64) as u64;
        let extremes = weights
            .iter()
            .filter(|&&weight| weight > extreme_above)
            .count() as u32;
        Self {
            outer: goal(band.outer(), band.zone_outer()),
            warm: goal(band.warm(), band.zone_warm()),
            rest: goal(band.rest(), band.zone_warm()),
            giants,
            giant_of,
            rate,
            mean,
            extreme_above,
            extremes,
            extreme_limits: extreme_limits(&units, extremes),
            units,
        }
    }

    pub(super) fn is_extreme(&self, weight: u64) -> bool {
        weight > self.extreme_above
    }
}

/// ⌈E · share of the worker⌉ + 1, in integers, so that equal workers get exactly ⌈E / W⌉ + 1.
fn extreme_limits(units: &[u64], extremes: u32) -> Vec<u32> {
    let all: u128 = units.iter().map(|&unit| u128::from(unit)).sum();
    let limit = |&unit: &u64| (u128::from(extremes) * u128::from(unit)).div_ceil(all) as u32 + 1;
    units.iter().map(limit).collect()
}

/// What may stay where it is: owners per partition (`NONE` for the others), loads and counts per worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept<'a> {
    pub(super) owners: &'a [u32],
    pub(super) loads: &'a [u64],
    pub(super) counts: &'a [u32],
}

/// The workers that host no giant yet, and what is left to average over them.
struct Free<'a> {
    units: &'a [u64],
    /// Last the largest, among equals the one with least to move away, then the smaller index. Hosts are
    /// dropped when they surface.
    largest: Vec<u32>,
    is_host: Vec<bool>,
    kept: Kept<'a>,
    load: u64,
    capacity: u128,
}

impl<'a> Free<'a> {
    fn new(units: &'a [u64], kept: Kept<'a>, total: u64) -> Self {
        let mut largest: Vec<u32> = (0..units.len() as u32)
            .filter(|&worker| units[worker as usize] > 0)
            .collect();
        largest.sort_by_key(|&worker| {
            let index = worker as usize;
            (units[index], Reverse(kept.loads[index]), Reverse(worker))
        });
        Self {
            units,
            largest,
            is_host: vec![false; units.len()],
            kept,
            load: total,
            capacity: units.iter().map(|&unit| u128::from(unit)).sum(),
        }
    }

    fn rate(&self) -> f64 {
        self.load as f64 / self.capacity as f64
    }

    fn largest(&mut self) -> u32 {
        while let Some(&worker) = self.largest.last() {
            if !self.is_host[worker as usize] {
                return worker;
            }
            self.largest.pop();
        }
        unreachable!("the last free worker never becomes a host")
    }

    /// The giants with their hosts, and the rate of the rest.
    fn seat_giants(&mut self, weights: &[u64], band: &Band) -> (Vec<(u32, u32)>, f64) {
        let mut giants = Vec::new();
        let top = self.largest();
        let bound = |rate: f64, unit: u64| band.outer().hi * rate * unit as f64;
        let first = bound(self.rate(), self.units[top as usize]);
        if !weights.iter().any(|&weight| weight as f64 > first) {
            return (giants, self.rate());
        }
        let by_weight = weights
            .iter()
            .enumerate()
            .map(|(p, &weight)| (weight, Reverse(p as u32)));
        let mut heaviest: BinaryHeap<_> = by_weight.collect();
        let mut left = self.largest.len();
        while let Some((weight, Reverse(partition))) = heaviest.pop() {
            let largest = self.largest();
            if left == 1 || weight as f64 <= bound(self.rate(), self.units[largest as usize]) {
                break;
            }
            let host = self.host(self.kept.owners[partition as usize], largest);
            self.is_host[host as usize] = true;
            self.load -= weight;
            self.capacity -= u128::from(self.units[host as usize]);
            left -= 1;
            giants.push((partition, host));
        }
        (giants, self.rate())
    }

    /// A giant stays where it is if that worker is not much smaller than the largest one free, and if hardly
    /// anything has to make way for it there or no empty one could take it instead. Only an empty one, because
    /// where caps keep others beside a giant it must not move on at every plan.
    fn host(&self, owner: u32, largest: u32) -> u32 {
        let Some(&unit) = self.units.get(owner as usize) else {
            return largest;
        };
        let is_large = unit * 2 >= self.units[largest as usize];
        let beside = self.kept.counts[owner as usize].saturating_sub(1);
        let is_cheaper = beside <= 1 || self.kept.counts[largest as usize] > 0;
        if is_large && is_cheaper && !self.is_host[owner as usize] {
            owner
        } else {
            largest
        }
    }
}
