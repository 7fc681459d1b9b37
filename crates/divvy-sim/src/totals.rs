//! What many worlds came to, added up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::coverage::Mishap;
use crate::trial::Outcome;

/// Sums over seeds: what a run that was interrupted goes on from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// How many seeds ran.
    pub seeds: u64,
    /// How long their clusters lived, together, in milliseconds.
    pub cluster_ms: u64,
    /// Things that happened.
    pub events: u64,
    /// Partitions that got a holder.
    pub grants: u64,
    /// Partitions that lost their holder or were asked back.
    pub revocations: u64,
    /// Effects of running partitions.
    pub effects: u64,
    /// Seeds that broke an invariant.
    pub violations: u64,
    /// What went wrong, by name.
    pub faults: BTreeMap<String, u64>,
}

impl Totals {
    /// How long their clusters lived, together, in hours.
    pub fn cluster_hours(&self) -> f64 {
        self.cluster_ms as f64 / 3_600_000.0
    }

    /// Adds the outcome of one seed.
    pub fn add(&mut self, outcome: &Outcome) {
        let tally = &outcome.tally;
        self.seeds += 1;
        self.cluster_ms += tally.lasted.as_millis() as u64;
        self.events += tally.events;
        self.grants += tally.grants;
        self.revocations += tally.moves;
        self.effects += tally.effects;
        self.violations += u64::from(outcome.broken.is_some());
        self.add_faults(&tally.coverage.by_name(outcome.mode));
    }

    /// Adds the sums of other seeds.
    pub fn merge(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.cluster_ms += other.cluster_ms;
        self.events += other.events;
        self.grants += other.grants;
        self.revocations += other.revocations;
        self.effects += other.effects;
        self.violations += other.violations;
        self.add_faults(&other.faults);
    }

    /// Names that nobody knows any more are left out.
    fn add_faults(&mut self, counts: &BTreeMap<String, u64>) {
        for &mishap in Mishap::ALL {
            let Some(count) = counts.get(mishap.as_str()) else {
                continue;
            };
            match self.faults.get_mut(mishap.as_str()) {
                Some(sum) => *sum += count,
                None => {
                    self.faults.insert(mishap.as_str().to_owned(), *count);
                }
            }
        }
    }
}
