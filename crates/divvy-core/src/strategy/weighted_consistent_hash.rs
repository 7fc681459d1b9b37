//! Weighted partitions on a ring, every worker inside a band.

use super::planned::{error_of, explain, ring_preference};
use super::{ConsistentHash, Strategy, known};
use crate::assignment::Assignment;
use crate::error::Error;
use crate::explain::Explanation;
use crate::partition::{PARTITION_WEIGHT_DEFAULT, Partitions};
use crate::plan::{self, Band, Plan, Reason};
use crate::proposal::{Interned, Proposal};
use crate::worker::{Worker, Workers};

/// How far above its share a worker's load may be, unless chosen otherwise.
pub const OVERLOAD_THRESHOLD_DEFAULT: f64 = 1.3;
/// Smallest overload threshold.
pub const OVERLOAD_THRESHOLD_MIN: f64 = 1.15;
/// Largest overload threshold, beyond which it means nothing any more.
pub const OVERLOAD_THRESHOLD_MAX: f64 = 100.0;
/// From how many times the mean weight on a partition is extreme, unless
/// chosen otherwise.
pub const EXTREME_THRESHOLD_DEFAULT: f64 = 2.0;
/// Smallest extreme threshold.
pub const EXTREME_THRESHOLD_MIN: f64 = 1.5;
/// Largest extreme threshold, at which nothing is extreme.
pub const EXTREME_THRESHOLD_MAX: f64 = 1e18;

/// Balances partition weights: every worker's load stays within a band around
/// its share, and from a previous assignment little moves.
///
/// Partitions much heavier than the mean (extremes) are placed first, heaviest
/// first, each on the lightest worker; the others go to the worker that
/// follows them on a [`Ring`](super::Ring) while that keeps it inside the band,
/// and otherwise to the lightest. With a previous assignment everything stays
/// whose owner is alive; orphans and new partitions are placed, and only
/// workers outside of the band are repaired, by the moves and swaps that mend
/// most for the fewest partitions.
///
/// Where all weights are equal and no worker has a limit, the placement is that
/// of [`ConsistentHash`], bit for bit, unless
/// [`with_fast_path(false)`](Self::with_fast_path).
///
/// Guarantees, where partitions are fine enough for it: every load between
/// `2 - t` and `t` times the worker's share, `t` being the overload threshold;
/// at most ⌈E / W⌉ + 1 of E extremes on one of W equal workers; nothing moves
/// while everybody is inside. The certificate of
/// [`Strategy::propose`] says what was reached. Does not promise the fewest
/// moves that exist; a lower bound is in the certificate.
///
/// ```
/// use divvy_core::{Partition, Partitions, Strategy, WeightedConsistentHash, Workers};
///
/// let strategy = WeightedConsistentHash::new()
///     .with_virtual_nodes(200)
///     .with_seed(7)
///     .with_overload_threshold(1.2)
///     .with_extreme_threshold(3.0)
///     .with_default_weight(10)
///     .with_fast_path(false);
///
/// let weighted = |n: u32| Partition::shard("orders", n)?.with_weight(i64::from(n % 7) * 10);
/// let partitions: Result<Vec<_>, _> = (0..500).map(weighted).collect();
/// let partitions = Partitions::new(partitions?)?;
/// let before = strategy.assign(&Workers::numbered("worker", 10)?, &partitions, None)?;
/// assert!(before.balance().max_over_mean <= 1.2);
///
/// let eleven = Workers::numbered("worker", 11)?;
/// let proposal = strategy.propose(&eleven, &partitions, Some(&before))?;
/// assert!(proposal.certificate.max_over_mean <= 1.2);
/// assert!(proposal.certificate.min_over_mean >= 0.8);
/// assert!(proposal.changes.iter().all(|change| change.to == "worker-10"));
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedConsistentHash {
    ring: ConsistentHash,
    thresholds: Thresholds,
    fast_path: bool,
}

impl WeightedConsistentHash {
    /// All options at their defaults: 150 virtual nodes, seed 0, overload
    /// threshold 1.3, extreme threshold 2, default weight 1, with the fast
    /// path.
    pub fn new() -> Self {
        Self {
            ring: ConsistentHash::new(),
            thresholds: Thresholds::default(),
            fast_path: true,
        }
    }

    /// The same with another number of virtual nodes, as
    /// [`ConsistentHash::with_virtual_nodes`] has it.
    pub fn with_virtual_nodes(mut self, virtual_nodes: u32) -> Self {
        self.ring = self.ring.with_virtual_nodes(virtual_nodes);
        self
    }

    /// The same with another seed, which gives an independent placement.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.ring = self.ring.with_seed(seed);
        self
    }

    /// The same with another overload threshold: 1.3 allows loads of 0.7 to
    /// 1.3 times a worker's share. Lower is more even and moves more. Outside
    /// of [`OVERLOAD_THRESHOLD_MIN`]..=[`OVERLOAD_THRESHOLD_MAX`] it is
    /// corrected to the nearer bound, and one warning is logged.
    pub fn with_overload_threshold(mut self, threshold: f64) -> Self {
        self.thresholds.set_overload(threshold);
        self
    }

    /// The same with another extreme threshold: a partition heavier than so
    /// many times the mean is placed first and spread. Below
    /// [`EXTREME_THRESHOLD_MIN`] it is corrected, and one warning is logged.
    pub fn with_extreme_threshold(mut self, threshold: f64) -> Self {
        self.thresholds.set_extreme(threshold);
        self
    }

    /// The same with another weight for partitions of weight 0. Below 1 it is
    /// corrected, and one warning is logged.
    pub fn with_default_weight(mut self, weight: i64) -> Self {
        self.thresholds.set_default_weight(weight);
        self
    }

    /// Whether equal weights are placed by the ring alone, which is fast but
    /// does not keep the band: a ring's shares deviate by 8 %.
    pub fn with_fast_path(self, fast_path: bool) -> Self {
        Self { fast_path, ..self }
    }

    pub(super) fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    fn plan(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        interned: &Interned,
    ) -> Result<Plan, Error> {
        let preferred = ring_preference(self.ring.ring(workers)?, partitions, interned);
        plan::banded(&interned.problem(), &self.thresholds.band(), preferred)
            .map_err(|error| error_of(error, workers))
    }
}

impl Default for WeightedConsistentHash {
    fn default() -> Self {
        Self::new()
    }
}

impl Strategy for WeightedConsistentHash {
    fn name(&self) -> &str {
        "weighted-consistent-hash"
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        let partitions = &partitions.with_default_weight(self.thresholds.default_weight())?;
        if self.fast_path && is_plain(workers, partitions) {
            return self.ring.assign(workers, partitions, previous);
        }
        Ok(self.propose(workers, partitions, previous)?.assignment)
    }

    fn propose(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Proposal, Error> {
        workers.eligible()?;
        let partitions = &partitions.with_default_weight(self.thresholds.default_weight())?;
        if self.fast_path && is_plain(workers, partitions) {
            return self.ring.propose(workers, partitions, previous);
        }
        let interned = Interned::new(workers, partitions, previous);
        let plan = self.plan(workers, partitions, &interned)?;
        log_overflow(&plan);
        interned.proposal(workers, partitions, previous, plan)
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        let partitions = &partitions.with_default_weight(self.thresholds.default_weight())?;
        let hashed = self
            .ring
            .explain(partition, workers, partitions, previous)?;
        if self.fast_path && is_plain(workers, partitions) {
            return Ok(hashed);
        }
        let at = known(partition, partitions)? as u32;
        let interned = Interned::new(workers, partitions, previous);
        let preferred = ring_preference(self.ring.ring(workers)?, partitions, &interned);
        let (problem, band) = (interned.problem(), self.thresholds.band());
        let (plan, decision) = plan::banded_decision(&problem, &band, false, preferred, at)
            .map_err(|error| error_of(error, workers))?;
        let proposal = interned.proposal(workers, partitions, previous, plan)?;
        let method = "Ranked by the way on the ring; a worker that would leave the band gets no \
                      more, extremes go to the lightest worker, and what may stay is not moved.";
        Ok(explain(hashed, &proposal, &decision, method))
    }
}

/// Whether the ring alone does: equal weights, and no limits to keep.
fn is_plain(workers: &Workers, partitions: &Partitions) -> bool {
    let has_cap = |worker: &Worker| worker.max_partitions().is_some();
    partitions.is_even() && !workers.iter().any(has_cap)
}

/// Logs one line for a plan that changes something and is not what the ring or
/// the band asks for.
fn log_overflow(plan: &Plan) {
    if plan.moves.is_empty() {
        return;
    }
    let over_band = |rejected: &plan::Rejection| rejected.reason == Reason::OverBand;
    let overflow = plan
        .moves
        .iter()
        .filter(|change| change.rejected.as_ref().is_some_and(over_band))
        .count();
    let certificate = &plan.certificate;
    let notes: Vec<String> = [
        (
            overflow,
            "partitions did not fit on the worker that the ring prefers",
        ),
        (
            certificate.giants as usize,
            "partitions are heavier than a worker's share",
        ),
        (
            certificate.outside as usize,
            "workers are outside of their band",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if !notes.is_empty() {
        let moves = plan.moves.len();
        tracing::debug!(moves, "{}", notes.join(", "));
    }
}

/// The options that are about weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Thresholds {
    overload: f64,
    extreme: f64,
    default_weight: u64,
}

impl Thresholds {
    pub(super) fn set_overload(&mut self, given: f64) {
        let bounds = (OVERLOAD_THRESHOLD_MIN, OVERLOAD_THRESHOLD_MAX);
        self.overload = corrected("overload threshold", given, bounds);
    }

    pub(super) fn set_extreme(&mut self, given: f64) {
        let bounds = (EXTREME_THRESHOLD_MIN, EXTREME_THRESHOLD_MAX);
        self.extreme = corrected("extreme threshold", given, bounds);
    }

    pub(super) fn set_default_weight(&mut self, given: i64) {
        let used = given.max(1);
        if used != given {
            tracing::warn!(
                given,
                used,
                "default weight {given} is below 1, using {used}"
            );
        }
        self.default_weight = used.unsigned_abs();
    }

    pub(super) fn default_weight(&self) -> u64 {
        self.default_weight
    }

    pub(super) fn band(&self) -> Band {
        Band {
            width: self.overload - 1.0,
            extreme: self.extreme,
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            overload: OVERLOAD_THRESHOLD_DEFAULT,
            extreme: EXTREME_THRESHOLD_DEFAULT,
            default_weight: PARTITION_WEIGHT_DEFAULT,
        }
    }
}

/// `given` within the bounds, with one warning where it was not.
fn corrected(option: &str, given: f64, (min, max): (f64, f64)) -> f64 {
    // Not clamp: NaN has to become a number.
    let used = if given > max {
        max
    } else if given >= min {
        given
    } else {
        min
    };
    if used != given {
        tracing::warn!(
            given,
            used,
            "{option} {given} is outside of {min}..={max}, using {used}"
        );
    }
    used
}
