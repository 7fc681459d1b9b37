//! The score of `cruster`: the highest of `weight` hashes.

use std::collections::BTreeMap;

use crate::error::{Error, Invalid};
use crate::hash::{self, Cruster};
use crate::worker::Worker;

/// Largest weight under [`Scheme::Cruster`](super::Scheme::Cruster), where a
/// weight is the number of hashes that a pair costs.
pub const CRUSTER_WEIGHT_MAX: f64 = 1000.0;

pub(super) fn check(worker: &Worker) -> Result<(), Error> {
    let weight = worker.weight();
    if weight.fract() != 0.0 || weight > CRUSTER_WEIGHT_MAX {
        let rule = format!(
            "must be whole and at most {CRUSTER_WEIGHT_MAX} under the scheme cruster (worker '{}')",
            worker.id()
        );
        return Err(Invalid::new("worker weight", weight, rule).into());
    }
    Ok(())
}

/// `max` over `w` in `0..weight` of the hash of
/// `group ':' id NUL host ':' port NUL decimal(w)`.
pub(super) fn hash(partition: &str, worker: &str, weight: f64) -> u64 {
    let mut digits = [0; 4];
    (0..weight as u32)
        .map(|unit| {
            let unit = decimal(unit, &mut digits);
            hash::cruster64(&[partition.as_bytes(), b"\0", worker.as_bytes(), b"\0", unit])
        })
        .max()
        .unwrap_or(0)
}

/// The decimal digits of a number below 10,000.
fn decimal(mut number: u32, digits: &mut [u8; 4]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

/// Lanes of hashes that are computed side by side: the rounds of one wait for
/// each other, those of several do not.
const LANES: usize = 8;

/// What is hashed behind a partition and a NUL, for every unit of weight of
/// every worker: its *ticket*, `host:port NUL decimal(w)`.
///
/// The hash starts with the length of the whole input, so tickets are kept by
/// length: for those of one length, the partition and what all of them begin
/// with are hashed once.
#[derive(Debug)]
pub(super) struct Tickets {
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    /// Length of a ticket.
    length: usize,
    /// What the tickets' first bytes bring, which they have in common.
    shared: Vec<u64>,
    /// What the other bytes bring, eight tickets side by side: a row for each
    /// byte, and as many rows for the next eight.
    rows: Vec<[u64; LANES]>,
    rows_each: usize,
    /// By ticket, the number of its worker and its place among the ids.
    owners: Vec<(u32, u32)>,
}

impl Tickets {
    /// The tickets of workers with these numbers, ids and weights, in the
    /// order of their ids.
    pub(super) fn new<'a>(workers: impl Iterator<Item = (u32, &'a str, f64)>) -> Self {
        let mut by_length: BTreeMap<usize, Vec<Ticket>> = BTreeMap::new();
        for (place, (number, id, weight)) in (0..).zip(workers) {
            for unit in 0..weight as u32 {
                let mut digits = [0; 4];
                let bytes = [id.as_bytes(), b"\0", decimal(unit, &mut digits)].concat();
                let class = by_length.entry(bytes.len()).or_default();
                let owner = (number, place);
                class.push(Ticket { bytes, owner });
            }
        }
        let classes = by_length.into_values().map(Class::new).collect();
        Self { classes }
    }

    /// The number of the worker that wins a partition, and its hash. Of equal
    /// ones the last by id wins.
    pub(super) fn winner(&self, partition: &str) -> (u32, u64) {
        let mut best: Option<(u64, u32, u32)> = None;
        for class in &self.classes {
            let state = class.state_behind(partition);
            for (block, owners) in class.owners.chunks(LANES).enumerate() {
                let rows = &class.rows[block * class.rows_each..][..class.rows_each];
                let hashes = finish(state, rows);
                for (&hash, &(number, place)) in hashes.iter().zip(owners) {
                    if best.is_none_or(|(top, last, _)| (hash, place) > (top, last)) {
                        best = Some((hash, place, number));
                    }
                }
            }
        }
        let (hash, _, number) = best.expect("eligible workers have a ticket");
        (number, hash)
    }
}

#[derive(Debug)]
struct Ticket {
    bytes: Vec<u8>,
    owner: (u32, u32),
}

impl Class {
    fn new(tickets: Vec<Ticket>) -> Self {
        let first = &tickets[0].bytes;
        let common = |ticket: &Ticket| {
            let pairs = first.iter().zip(&ticket.bytes);
            pairs.take_while(|(a, b)| a == b).count()
        };
        let shared = tickets.iter().map(common).min().unwrap_or(first.len());
        let rows_each = first.len() - shared;
        let mut rows = vec![[0; LANES]; rows_each * tickets.len().div_ceil(LANES)];
        for (index, ticket) in tickets.iter().enumerate() {
            let block = index / LANES * rows_each;
            for (row, &byte) in ticket.bytes[shared..].iter().enumerate() {
                rows[block + row][index % LANES] = Cruster::part(byte);
            }
        }
        Self {
            length: first.len(),
            shared: first[..shared]
                .iter()
                .map(|&byte| Cruster::part(byte))
                .collect(),
            rows,
            rows_each,
            owners: tickets.iter().map(|ticket| ticket.owner).collect(),
        }
    }

    /// The hash of `partition NUL` and of what the tickets begin with.
    fn state_behind(&self, partition: &str) -> Cruster {
        let start = Cruster::start(partition.len() + 1 + self.length);
        let bytes = partition.bytes().chain([0]).map(Cruster::part);
        let parts = bytes.chain(self.shared.iter().copied());
        parts.fold(start, Cruster::round)
    }
}

fn finish(state: Cruster, rows: &[[u64; LANES]]) -> [u64; LANES] {
    let mut states = [state; LANES];
    for row in rows {
        for (state, &part) in states.iter_mut().zip(row) {
            *state = state.round(part);
        }
    }
    states.map(Cruster::finish)
}

/// The hash as a fraction of all hashes, which is what the ranking goes by.
pub(super) fn score(hash: u64) -> f64 {
    hash as f64 / 2f64.powi(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_find_the_winner_of_the_definition() {
        let workers: Vec<(u32, String, f64)> = (0..90)
            .map(|n: u32| {
                (
                    n * 2,
                    format!("host{n}:{}", 9000 + n * 37 % 2000),
                    f64::from(n % 13),
                )
            })
            .filter(|(_, _, weight)| *weight > 0.0)
            .collect();
        for count in [1, 2, 9, workers.len()] {
            let some = &workers[..count];
            let borrowed = some
                .iter()
                .map(|(number, id, weight)| (*number, &**id, *weight));
            let tickets = Tickets::new(borrowed);
            for shard in 0..200 {
                let partition = format!("group:{shard}");
                let best = some
                    .iter()
                    .map(|(number, id, weight)| (hash(&partition, id, *weight), *number))
                    .max()
                    .expect("there are workers");
                assert_eq!(tickets.winner(&partition), (best.1, best.0));
            }
        }
    }
}
