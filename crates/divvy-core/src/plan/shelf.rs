//! What every worker owns, in order of weight, and the workers in order of level and of what they can spare.
//!
//! A repair asks three questions of it, each answered in logarithmic time: who is lightest or heaviest, who can
//! spare a partition of about this weight, and which of a worker's partitions has about this weight.

use std::collections::BTreeSet;

use super::ledger::Ledger;
use super::lightest::key;
use super::problem::NONE;
use super::target::{Goal, Targets};

/// The whole cluster, or one zone of it.
pub(super) const ALL: usize = 0;

/// Lists and orders over the state of a ledger; every change goes through [`Shelf::shift`].
#[derive(Debug)]
pub(super) struct Shelf<'a> {
    targets: &'a Targets,
    aim: &'a Goal,
    /// Partitions per worker by weight, then index; giants are left out.
    lists: Vec<Vec<u32>>,
    /// The order of all workers, then one per zone if there are several.
    orders: Vec<Order>,
    /// The keys each worker is in the orders with: level, and spare weight.
    keys: Vec<(u64, u64)>,
}

/// Workers that host no giant.
#[derive(Debug, Clone, Default)]
struct Order {
    by_level: BTreeSet<(u64, u32)>,
    /// The same without those whose cap leaves no room: what a move may end at.
    open: BTreeSet<(u64, u32)>,
    /// The heaviest partition a worker can give without falling below what it aims at; absent if there is none.
    by_spare: BTreeSet<(u64, u32)>,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(ledger: &Ledger<'_>, targets: &'a Targets, aim: &'a Goal) -> Self {
        let mut lists: Vec<Vec<u32>> = ledger
            .counts
            .iter()
            .map(|&count| Vec::with_capacity(count as usize))
            .collect();
        for (partition, &owner) in ledger.owners.iter().enumerate() {
            if targets.giant_of[owner as usize] != partition as u32 {
                lists[owner as usize].push(partition as u32);
            }
        }
        for list in &mut lists {
            list.sort_unstable_by_key(|&partition| (ledger.weights[partition as usize], partition));
        }
        let zones = ledger.zones.len();
        let mut shelf = Self {
            targets,
            aim,
            keys: vec![(0, 0); lists.len()],
            lists,
            orders: vec![Order::default(); if zones > 1 { 1 + zones } else { 1 }],
        };
        for worker in 0..ledger.slots.len() as u32 {
            shelf.enter(ledger, worker);
        }
        shelf
    }

    /// A worker's partitions by weight, without its giant: that one never moves again.
    pub(super) fn list(&self, worker: u32) -> &[u32] {
        &self.lists[worker as usize]
    }

    /// Moves a partition to another worker.
    pub(super) fn shift(&mut self, ledger: &mut Ledger<'_>, partition: u32, to: u32) {
        let from = ledger.owners[partition as usize];
        let by = |&other: &u32| (ledger.weights[other as usize], other);
        let place = by(&partition);
        self.leave(ledger, from);
        self.leave(ledger, to);
        let list = &mut self.lists[from as usize];
        let at = list.partition_point(|other| by(other) < place);
        list.remove(at);
        let list = &mut self.lists[to as usize];
        let at = list.partition_point(|other| by(other) < place);
        list.insert(at, partition);
        ledger.assign(partition, to, self.targets);
        self.enter(ledger, from);
        self.enter(ledger, to);
    }

    /// Workers from the lightest on; ties to the smaller index.
    pub(super) fn lightest(&self, order: usize) -> impl Iterator<Item = u32> {
        self.orders[order]
            .by_level
            .iter()
            .map(|&(_, worker)| worker)
    }

    /// Workers that have room for one more, from the lightest on; ties to the smaller index.
    pub(super) fn lightest_open(&self, order: usize) -> impl Iterator<Item = u32> {
        self.orders[order].open.iter().map(|&(_, worker)| worker)
    }

    /// Workers from the heaviest on.
    pub(super) fn heaviest(&self, order: usize) -> impl Iterator<Item = u32> {
        self.orders[order]
            .by_level
            .iter()
            .rev()
            .map(|&(_, worker)| worker)
    }

    /// Workers that can spare a partition: the one whose heaviest is just enough, and those whose heaviest is
    /// the most that is not too much.
    pub(super) fn sparing(
        &self,
        order: usize,
        enough: u64,
        too_much: u64,
    ) -> impl Iterator<Item = u32> {
        let spares = &self.orders[order].by_spare;
        let least = spares.range((enough, 0)..).next();
        let most = spares.range(..(too_much, 0)).rev().take(2);
        least.into_iter().chain(most).map(|&(_, worker)| worker)
    }

    fn enter(&mut self, ledger: &Ledger<'_>, worker: u32) {
        let index = worker as usize;
        if self.targets.units[index] == 0 || self.targets.giant_of[index] != NONE {
            return;
        }
        let level = ledger.loads[index] as f64 / self.targets.units[index] as f64;
        let spare = ledger.loads[index].saturating_sub(self.aim.workers[index].lo);
        let list = &self.lists[index];
        let lighter =
            list.partition_point(|&partition| ledger.weights[partition as usize] <= spare);
        let heaviest = lighter
            .checked_sub(1)
            .map_or(0, |at| ledger.weights[list[at] as usize]);
        self.keys[index] = (key(level), heaviest);
        for order in orders_of(ledger, worker, self.orders.len()) {
            self.orders[order].by_level.insert((key(level), worker));
            if ledger.has_room(worker) {
                self.orders[order].open.insert((key(level), worker));
            }
            if heaviest > 0 {
                self.orders[order].by_spare.insert((heaviest, worker));
            }
        }
    }

    fn leave(&mut self, ledger: &Ledger<'_>, worker: u32) {
        let (level, spare) = self.keys[worker as usize];
        for order in orders_of(ledger, worker, self.orders.len()) {
            self.orders[order].by_level.remove(&(level, worker));
            self.orders[order].open.remove(&(level, worker));
            self.orders[order].by_spare.remove(&(spare, worker));
        }
    }
}

/// The order of one zone.
pub(super) fn order_of_zone(zone: usize) -> usize {
    zone + 1
}

fn orders_of(ledger: &Ledger<'_>, worker: u32, orders: usize) -> impl Iterator<Item = usize> {
    let zone = order_of_zone(ledger.zones.of[worker as usize] as usize);
    [ALL, zone].into_iter().filter(move |&order| order < orders)
}
