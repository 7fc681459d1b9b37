//! The score of `cruster`: the highest of `weight` hashes.

use crate::error::{Error, Invalid};
use crate::hash;
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

/// The hash as a fraction of all hashes, which is what the ranking goes by.
pub(super) fn score(hash: u64) -> f64 {
    hash as f64 / 2f64.powi(64)
}
