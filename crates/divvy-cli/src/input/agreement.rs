//! Whether what was given goes together: names that do not match, weights that
//! are missing, and what the strategy does not look at.

use std::collections::BTreeSet;

use divvy::{Partitions, StrategyName, Worker, Workers};

use super::Given;
use crate::terminal::excerpt;
use crate::warnings::note;

/// Says where half or more of the names of the assignment in force are unknown
/// while there are others that it does not know: most often one thing is
/// written in two ways.
pub(super) fn warn_of_names<'a>(
    noun: &str,
    before: impl Iterator<Item = &'a str> + Clone,
    mut now: impl Iterator<Item = &'a str> + Clone,
) {
    let known: BTreeSet<&str> = now.clone().collect();
    let had: BTreeSet<&str> = before.clone().collect();
    let mut missing = before.filter(|name| !known.contains(name));
    let Some(one) = missing.next() else { return };
    let missing = 1 + missing.count();
    let stranger = now.find(|name| !had.contains(name));
    let Some(other) = stranger.filter(|_| 2 * missing >= had.len()) else {
        return;
    };
    tracing::warn!(
        "{missing} of the {} {noun} of --previous are not among --{noun}, such as '{}' there and \
         '{}' here: are they named in the same way?",
        had.len(),
        excerpt(one),
        excerpt(other)
    );
}

/// Says how many partitions have no weight where others have one.
pub(super) fn warn_of_weightless(partitions: &Partitions) {
    let without = partitions.iter().filter(|p| p.weight() == 0).count();
    if without > 0 && without < partitions.len() {
        tracing::warn!(
            "{without} of {} partitions have no weight or 0: each counts as 1",
            partitions.len()
        );
    }
}

/// Says in one line what was given and the strategy does not look at.
pub(crate) fn note_of_overlooked(
    strategy: StrategyName,
    given: &Given,
    workers: &Workers,
    partitions: &Partitions,
) {
    // One worker gets everything, whatever it is told.
    if workers.iter().filter(|worker| worker.is_eligible()).count() < 2 {
        return;
    }
    let (weights, zones, rest) = looks_at(strategy);
    let mut overlooked = Vec::new();
    let mut loads = partitions.loads();
    let first = loads.next();
    if !weights && loads.any(|load| Some(load) != first) {
        overlooked.push("partition weights");
    }
    let known: BTreeSet<&str> = workers.iter().filter_map(Worker::zone).collect();
    if !zones && known.len() > 1 {
        overlooked.push("zones");
    }
    let limited = workers.iter().any(|w| w.max_partitions().is_some());
    if !rest && limited {
        overlooked.push("max_partitions");
    }
    // What it made itself it makes again, and so keeps what it can.
    let own = given.previous_strategy() == Some(strategy.as_str());
    if !rest && given.previous().is_some() && !own {
        overlooked.push("--previous");
    }
    if let [first, others @ ..] = overlooked.as_slice() {
        let looks = match others {
            [] => format!("does not look at {first}"),
            others => format!("looks at neither {first} nor {}", others.join(" nor ")),
        };
        note(&format!("{strategy} {looks}; --strategy zoned does"));
    }
}

/// Whether a strategy looks at weights of partitions, at zones, and at limits
/// and the previous assignment.
fn looks_at(strategy: StrategyName) -> (bool, bool, bool) {
    match strategy {
        StrategyName::Zoned => (true, true, true),
        StrategyName::WeightedConsistentHash => (true, false, true),
        StrategyName::Balanced => (false, false, true),
        _ => (false, false, false),
    }
}
