//! Who owns what while a plan is made, and why each change was made.

use super::outcome::{Cause, Move, Rejection};
use super::place::Unplaced;
use super::problem::{NONE, Slot};
use super::target::Targets;
use super::zone::Zones;

/// The state of a plan by weight. Owners are `NONE` until placed.
#[derive(Debug, Clone)]
pub(super) struct Ledger<'a> {
    pub(super) weights: &'a [u64],
    pub(super) slots: &'a [Slot],
    pub(super) zones: &'a Zones,
    pub(super) owners: Vec<u32>,
    pub(super) loads: Vec<u64>,
    pub(super) counts: Vec<u32>,
    /// Extreme partitions per worker.
    pub(super) extremes: Vec<u32>,
    pub(super) zone_loads: Vec<u64>,
    /// Index into `notes` per partition, or `NONE`.
    noted: Vec<u32>,
    notes: Vec<(Cause, Option<Rejection>)>,
    /// The partition that somebody asks about, or `NONE`.
    watched: u32,
    /// Why it is given to whom it is given next.
    reason: Option<(Cause, Option<Rejection>)>,
    /// When it was given to somebody last.
    pub(super) recorded: Option<Box<Recorded<'a>>>,
}

/// The state in which a partition was given to a worker, and why.
#[derive(Debug, Clone)]
pub(super) struct Recorded<'a> {
    pub(super) state: Ledger<'a>,
    pub(super) to: u32,
    pub(super) cause: Cause,
    pub(super) rejected: Option<Rejection>,
}

impl<'a> Ledger<'a> {
    /// Books the partitions that may stay.
    pub(super) fn new(
        weights: &'a [u64],
        slots: &'a [Slot],
        zones: &'a Zones,
        previous: &[u32],
    ) -> Self {
        let mut ledger = Self {
            weights,
            slots,
            zones,
            owners: vec![NONE; previous.len()],
            loads: vec![0; slots.len()],
            counts: vec![0; slots.len()],
            extremes: vec![0; slots.len()],
            zone_loads: vec![0; zones.len()],
            noted: vec![NONE; previous.len()],
            notes: Vec::new(),
            watched: NONE,
            reason: None,
            recorded: None,
        };
        for (partition, &owner) in previous.iter().enumerate() {
            let slot = slots.get(owner as usize);
            if slot.is_some_and(Slot::is_eligible) {
                let worker = owner as usize;
                ledger.owners[partition] = owner;
                ledger.loads[worker] += weights[partition];
                ledger.counts[worker] += 1;
            }
        }
        for (worker, &load) in ledger.loads.iter().enumerate() {
            ledger.zone_loads[zones.of[worker] as usize] += load;
        }
        ledger
    }

    /// Records when this partition is given to a worker.
    pub(super) fn watch(&mut self, partition: u32) {
        self.watched = partition;
    }

    fn record(&mut self, to: u32) {
        let (cause, rejected) = self.reason.expect("what is given is noted before");
        self.recorded = None;
        let state = self.clone();
        self.recorded = Some(Box::new(Recorded {
            state,
            to,
            cause,
            rejected,
        }));
    }

    /// Counts the extremes, once it is known what is extreme.
    pub(super) fn count_extremes(&mut self, targets: &Targets) {
        if targets.extremes == 0 {
            return;
        }
        for (&owner, &weight) in self.owners.iter().zip(self.weights) {
            if owner != NONE && targets.is_extreme(weight) {
                self.extremes[owner as usize] += 1;
            }
        }
    }

    /// Gives a partition to a worker, or to nobody.
    pub(super) fn assign(&mut self, partition: u32, to: u32, targets: &Targets) {
        if partition == self.watched && to != NONE {
            self.record(to);
        }
        let weight = self.weights[partition as usize];
        let extreme = u32::from(targets.is_extreme(weight));
        let from = std::mem::replace(&mut self.owners[partition as usize], to);
        if from != NONE {
            let from = from as usize;
            self.loads[from] -= weight;
            self.counts[from] -= 1;
            self.extremes[from] -= extreme;
            self.zone_loads[self.zones.of[from] as usize] -= weight;
        }
        if to != NONE {
            self.book(weight, to, targets);
        }
    }

    /// Gives a partition that has no owner to a worker.
    pub(super) fn seat(&mut self, unplaced: &Unplaced, worker: u32, targets: &Targets) {
        if unplaced.partition == self.watched {
            self.record(worker);
        }
        self.owners[unplaced.partition as usize] = worker;
        self.book(unplaced.weight, worker, targets);
    }

    fn book(&mut self, weight: u64, to: u32, targets: &Targets) {
        let to = to as usize;
        self.loads[to] += weight;
        self.counts[to] += 1;
        self.extremes[to] += u32::from(targets.is_extreme(weight));
        self.zone_loads[self.zones.of[to] as usize] += weight;
    }

    /// Notes why a partition is about to move. The first cause stands: what happens to it afterwards follows
    /// from that.
    pub(super) fn note(&mut self, partition: u32, cause: Cause, rejected: Option<Rejection>) {
        if partition == self.watched {
            self.reason = Some((cause, rejected));
        }
        let noted = &mut self.noted[partition as usize];
        if *noted == NONE {
            *noted = self.notes.len() as u32;
            self.notes.push((cause, rejected));
        } else if rejected.is_some() {
            self.notes[*noted as usize].1 = rejected;
        }
    }

    /// Whether the worker may own one more partition.
    pub(super) fn has_room(&self, worker: u32) -> bool {
        self.counts[worker as usize] < self.slots[worker as usize].cap()
    }

    /// Every partition that is not where it was.
    pub(super) fn moves(&self, previous: &[u32]) -> Vec<Move> {
        let mut moves = Vec::with_capacity(self.notes.len());
        for (partition, (&from, &to)) in previous.iter().zip(&self.owners).enumerate() {
            if from == to {
                continue;
            }
            let (cause, rejected) = self.notes[self.noted[partition] as usize];
            moves.push(Move {
                partition: partition as u32,
                from,
                to,
                cause,
                // A repair may have found room where there was none at first.
                rejected: rejected.filter(|rejected| rejected.worker != to),
            });
        }
        moves
    }
}
