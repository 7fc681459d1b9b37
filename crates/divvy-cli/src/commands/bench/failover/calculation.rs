//! What it takes to place partitions, by the strategy that is the default.

use std::time::{Duration, Instant};

use divvy::{Partitions, Strategy as _, WeightedConsistentHash, Workers};

use super::report::Bound;

/// Time and memory of one placement from nothing.
pub(super) struct Calculation {
    took: Duration,
    /// Bytes beyond what the process had before; nothing where the system does
    /// not tell.
    bytes: Option<u64>,
}

impl Calculation {
    pub(super) fn measure(workers: u32, partitions: u32) -> anyhow::Result<Self> {
        let workers = Workers::numbered("worker", workers as usize)?;
        let partitions = Partitions::shards([("p", partitions)])?;
        let before = restart_peak();
        let begun = Instant::now();
        let placed = WeightedConsistentHash::new().assign(&workers, &partitions, None)?;
        let took = begun.elapsed();
        let peak = status_bytes("VmHWM:");
        drop(placed);
        let bytes = before.zip(peak);
        Ok(Self {
            took,
            bytes: bytes.map(|(before, peak)| peak.saturating_sub(before)),
        })
    }

    pub(super) fn bounds(&self) -> Vec<Bound> {
        let mut bounds = vec![Bound::new("calculation, ms", super::ms(self.took), 100.0)];
        if let Some(bytes) = self.bytes {
            bounds.push(Bound::new("calculation, bytes", bytes as f64, 10e6));
        }
        bounds
    }
}

/// Lets the system count the most memory from now on, and says how much it is
/// now.
fn restart_peak() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status_bytes("VmRSS:")
}

fn status_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}
