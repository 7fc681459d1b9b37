//! What a plan is about to change, as a table and a picture show it.

use std::collections::BTreeMap;

use divvy::{Assignment, Certificate, Proposal};

use crate::holding::Holding;
use crate::natural;
use crate::table::counted;

/// A proposal next to the assignment that it starts from.
pub(crate) struct Preview<'a> {
    pub(crate) strategy: &'a str,
    pub(crate) before: &'a Assignment,
    pub(crate) proposal: &'a Proposal,
    /// How far from its share a load may be, where the strategy has a band.
    pub(crate) band: Option<f64>,
}

/// One worker before and after; it is absent where it joins or leaves.
pub(crate) struct Pair<'a> {
    pub(crate) id: &'a str,
    pub(crate) before: Option<Holding<'a>>,
    pub(crate) after: Option<Holding<'a>>,
}

/// What loads are held to: edges in relation to a worker's share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edges {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl<'a> Preview<'a> {
    /// What is placed, by whom, on how many: `balanced: 64 partitions, 3
    /// workers -> 4`.
    pub(crate) fn heading(&self) -> String {
        format!(
            "{}: {}, {} -> {}",
            self.strategy,
            counted(self.after().partitions().len(), "partition"),
            counted(self.before.workers().len(), "worker"),
            self.after().workers().len(),
        )
    }

    pub(crate) fn after(&self) -> &'a Assignment {
        &self.proposal.assignment
    }

    pub(crate) fn certificate(&self) -> &'a Certificate {
        &self.proposal.certificate
    }

    /// The worker that will have most in relation to its share, the first of
    /// equals; `None` where nobody has anything.
    pub(crate) fn fullest(&self) -> Option<Holding<'a>> {
        let holdings = Holding::all(self.after()).into_iter();
        let held = holdings.filter(|holding| holding.load > 0 && holding.fair > 0.0);
        held.reduce(|most, other| match other.ratio() > most.ratio() {
            true => other,
            false => most,
        })
    }

    /// Every worker of before or after, in natural order.
    pub(crate) fn workers(&self) -> Vec<Pair<'a>> {
        let mut pairs: BTreeMap<&str, Pair<'_>> = BTreeMap::new();
        for holding in Holding::all(self.before) {
            let id = holding.worker.id();
            let before = Some(holding);
            let pair = Pair {
                id,
                before,
                after: None,
            };
            pairs.insert(id, pair);
        }
        for holding in Holding::all(self.after()) {
            let id = holding.worker.id();
            let absent = Pair {
                id,
                before: None,
                after: None,
            };
            pairs.entry(id).or_insert(absent).after = Some(holding);
        }
        let mut pairs: Vec<Pair<'_>> = pairs.into_values().collect();
        pairs.sort_by(|a, b| natural::compare(a.id, b.id));
        pairs
    }

    /// Whether partitions have weights.
    pub(crate) fn is_loaded(&self) -> bool {
        let loaded =
            |assignment: &Assignment| assignment.partitions().iter().any(|p| p.weight() != 0);
        loaded(self.before) || loaded(self.after())
    }

    /// Whether loads were held inside the band. Where all partitions weigh
    /// the same, a strategy that has one may do without.
    pub(crate) fn is_banded(&self) -> bool {
        // Only planning by weight limits extremes, and then to 1 at least.
        self.band.is_some() && self.certificate().extremes_limit > 0
    }

    /// The edges that loads were held inside.
    pub(crate) fn edges(&self) -> Option<Edges> {
        let width = self.band.filter(|_| self.is_banded())?;
        let target = self.certificate().target_over_mean;
        Some(Edges {
            low: target * (1.0 - width).max(0.0),
            high: target * (1.0 + width),
        })
    }
}

impl Edges {
    pub(crate) fn both(self) -> [f64; 2] {
        [self.low, self.high]
    }
}
