//! The settings of planning by weight, and the edges that follow from them.
//!
//! There are three bands around the target, each inside the one before. Only the outermost is promised:
//!
//! - *outer*: ± `width`. A worker outside is repaired; a worker inside is left alone, wherever it is.
//! - *warm*: what the steps of a repair are measured against, so that of two steps that both suffice the one
//!   is taken that does not leave a worker at the edge. A repair still ends as soon as everybody is inside
//!   the outer band.
//! - *rest*: what a cold start aims at, where placing is free. From there every partition may drift by
//!   [`DRIFT`] up or down, in whatever combination, and nobody leaves the outer band:
//!   a level grows by at most 1 + d while the mean shrinks by at most 1 − d, hence the quotients below.

use super::problem::PlanError;

/// The drift of single weights a cold start prepares for.
const DRIFT: f64 = 0.05;

/// The width that steps of a repair are measured against, as part of the width.
const WARM: f64 = 5.0 / 6.0;

/// The band of a zone, as part of the width for workers. Workers inside their band keep their zone inside the
/// same band anyway, so only a narrower one asks for anything.
const ZONE: f64 = 1.0 / 3.0;

/// Settings of planning by weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// How far a worker's load may be from its share, as part of it: 0.3 allows 0.7 to 1.3. More than 0, at
    /// most 100. From 1 on there is no lower side. The narrower, the more moves a join or a loss costs, and
    /// the likelier that partitions are too coarse for it.
    pub width: f64,
    /// A partition heavier than this many times the mean partition is extreme: extremes are placed first,
    /// heaviest first, and a worker of average weight owns at most ⌈E / W⌉ + 1 of them. At least 1; high
    /// values switch it off.
    pub extreme: f64,
}

impl Default for Band {
    fn default() -> Self {
        Self {
            width: 0.3,
            extreme: 2.0,
        }
    }
}

/// Lowest and highest level, relative to the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Edges {
    pub(super) lo: f64,
    pub(super) hi: f64,
}

impl Edges {
    fn around(width: f64) -> Self {
        Self {
            lo: (1.0 - width).max(0.0),
            hi: 1.0 + width,
        }
    }
}

impl Band {
    pub(super) fn validate(&self) -> Result<(), PlanError> {
        let error = |field, value| Err(PlanError::BandRange { field, value });
        if !(self.width > 0.0 && self.width <= 100.0) {
            return error("width", self.width);
        }
        if !(self.extreme >= 1.0 && self.extreme.is_finite()) {
            return error("extreme", self.extreme);
        }
        Ok(())
    }

    pub(super) fn outer(&self) -> Edges {
        Edges::around(self.width)
    }

    pub(super) fn warm(&self) -> Edges {
        Edges::around(self.width * WARM)
    }

    /// Where the width leaves no room for the drift, half of it is kept as slack.
    pub(super) fn rest(&self) -> Edges {
        let outer = self.outer();
        let half = Edges::around(self.width * 0.5);
        let shrink = (1.0 - DRIFT) / (1.0 + DRIFT);
        Edges {
            lo: (outer.lo / shrink).min(half.lo),
            hi: (outer.hi * shrink).max(half.hi),
        }
    }

    pub(super) fn zone_outer(&self) -> Edges {
        Edges::around(self.width * ZONE)
    }

    pub(super) fn zone_warm(&self) -> Edges {
        Edges::around(self.width * ZONE * WARM)
    }
}
