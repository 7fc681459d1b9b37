//! The score of `rendezgo`: `weight / -ln(u)` with `u` from XXH64.

use crate::error::{Error, Invalid};
use crate::hash;
use crate::logarithm;
use crate::partition::Partition;

/// The name that `rendezgo` hashes for a partition: `workload|unit`.
pub(super) fn slot(partition: &Partition) -> Result<String, Error> {
    let segments: Vec<&str> = partition.segments().collect();
    if let [workload, unit] = segments[..]
        && let Ok(number) = unit.parse::<u64>()
        && number.to_string() == unit
    {
        return Ok(format!("{workload}|{unit}"));
    }
    let rule = "must be workload:unit with a decimal unit under the scheme rendezgo";
    Err(Invalid::new("partition", partition, rule).into())
}

/// The same of a partition that is known to be one.
pub(crate) fn slot_of(workload: &str, unit: u32) -> String {
    format!("{workload}|{unit}")
}

/// The name that `rendezgo` hashes for a worker: `cluster:node`.
pub(super) fn node(cluster: &str, worker: &str) -> String {
    format!("{cluster}:{worker}")
}

/// XXH64 of `slot::node`.
pub(crate) fn hash(slot: &str, node: &str, scratch: &mut Vec<u8>) -> u64 {
    scratch.clear();
    scratch.extend_from_slice(slot.as_bytes());
    scratch.extend_from_slice(b"::");
    scratch.extend_from_slice(node.as_bytes());
    hash::xxh64(scratch)
}

/// The score of a hash. A hash of 0 counts as the smallest positive number.
pub(crate) fn score(hash: u64, weight: f64) -> f64 {
    weight / -logarithm(hash as f64)
}

/// The logarithm that a score is made of, from the hash as a number.
pub(crate) fn logarithm(hash: f64) -> f64 {
    match hash == 0.0 {
        true => SMALLEST_LN,
        false => logarithm::ln(hash / 2f64.powi(64)),
    }
}

/// The logarithm of the smallest positive `f64`, 2^-1074.
const SMALLEST_LN: f64 = -1074.0 * std::f64::consts::LN_2;
