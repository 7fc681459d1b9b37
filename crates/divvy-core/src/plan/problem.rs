//! What is to be planned: partitions, the slots that may take them, and who owned them before.
//!
//! A [`Slot`] is a worker as the planner sees it. A worker that left, is unhealthy or has weight 0 may stay
//! in the list with weight 0: it takes nothing and its partitions are orphans. So may it be left out, with
//! [`GONE`] for the partitions it owned.

use std::fmt;

/// Previous owner of a partition that is new.
pub const NONE: u32 = u32::MAX;

/// Previous owner of a partition whose worker is no longer among the slots.
pub const GONE: u32 = u32::MAX - 1;

/// Bounds of a worker's weight other than zero. Outside of them shares would lose their meaning to rounding.
const SLOT_WEIGHT: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// The weights of the partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights<'a> {
    /// One per partition, each at least 1, their sum at most `i64::MAX`.
    Each(&'a [u64]),
    /// Every partition weighs 1. Spares the planner a pass over memory.
    Even,
}

impl Weights<'_> {
    pub(super) fn of(self, partition: usize) -> u64 {
        match self {
            Self::Each(weights) => weights[partition],
            Self::Even => 1,
        }
    }
}

/// A worker that may own partitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// Capacity relative to the other workers; 0 takes nothing. Otherwise 1e-9 to 1e9.
    pub weight: f64,
    /// The most partitions this worker may own, if there is a limit. 0 is the same as weight 0.
    pub max_partitions: Option<u32>,
    /// The zone it is in. Any number; only `zoned` and `zoned_banded` look at it.
    pub zone: u32,
}

impl Slot {
    /// A slot of this weight, without a cap, in zone 0.
    pub fn new(weight: f64) -> Self {
        Self {
            weight,
            max_partitions: None,
            zone: 0,
        }
    }

    /// Whether it may own anything at all.
    pub fn is_eligible(&self) -> bool {
        self.weight > 0.0 && self.max_partitions != Some(0)
    }

    /// The most partitions it may own.
    pub(super) fn cap(&self) -> u32 {
        if self.is_eligible() {
            self.max_partitions.unwrap_or(u32::MAX)
        } else {
            0
        }
    }
}

/// One planning problem. The number of partitions is the length of `previous`.
///
/// ```
/// use divvy_core::plan::{balanced, Problem, Slot, Weights, NONE};
///
/// let slots = [Slot::new(1.0), Slot::new(1.0)];
/// let problem = Problem { weights: Weights::Even, slots: &slots, previous: &[0, 0, 0, NONE] };
/// let plan = balanced(&problem, |_partition| 1)?;
/// assert_eq!(plan.owners, [0, 0, 1, 1]);
/// assert_eq!(plan.certificate.moves, plan.certificate.lower_bound);
/// # Ok::<(), divvy_core::plan::PlanError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Effective weights: a partition of weight 0 has been given its default already.
    pub weights: Weights<'a>,
    /// The workers in id order.
    pub slots: &'a [Slot],
    /// Previous owner of each partition: an index into `slots`, [`NONE`] or [`GONE`].
    pub previous: &'a [u32],
}

impl Problem<'_> {
    /// Checks everything but the range of `previous`, which [`Problem::held`] checks on its way.
    pub(super) fn validate(&self) -> Result<(), PlanError> {
        let partitions = self.previous.len();
        if partitions >= GONE as usize || self.slots.len() >= GONE as usize {
            return Err(PlanError::TooMany {
                partitions,
                workers: self.slots.len(),
            });
        }
        for (worker, slot) in self.slots.iter().enumerate() {
            if slot.weight != 0.0 && !SLOT_WEIGHT.contains(&slot.weight) {
                return Err(PlanError::WorkerWeight {
                    worker: worker as u32,
                    weight: slot.weight,
                });
            }
        }
        if !self.slots.iter().any(Slot::is_eligible) {
            return Err(PlanError::NoWorkers);
        }
        let room: u64 = self.slots.iter().map(|slot| u64::from(slot.cap())).sum();
        if room < partitions as u64 {
            return Err(PlanError::NoRoom { partitions, room });
        }
        match self.weights {
            Weights::Each(weights) => validate_weights(weights, partitions),
            Weights::Even => Ok(()),
        }
    }

    /// How many partitions each slot held, and how many had no owner before.
    pub(super) fn held(&self) -> Result<(Vec<u32>, u32), PlanError> {
        // Shifted by two, GONE and NONE wrap around to the first counters and whoever is unknown is beyond the
        // last: one comparison for each of a million.
        let size = self.slots.len() + 2;
        // Four tables, because equal owners often follow each other and one counter could not be raised again
        // before it is stored.
        let mut tables = vec![0u32; 4 * size];
        let (ab, cd) = tables.split_at_mut(2 * size);
        let ((a, b), (c, d)) = (ab.split_at_mut(size), cd.split_at_mut(size));
        let is_counted = |table: &mut [u32], owner: u32| {
            let counter = table.get_mut(owner.wrapping_add(2) as usize);
            counter.map(|counter| *counter += 1).is_some()
        };
        let (quads, rest) = self.previous.as_chunks::<4>();
        for &[w, x, y, z] in quads {
            if !(is_counted(a, w) && is_counted(b, x) && is_counted(c, y) && is_counted(d, z)) {
                return Err(self.unknown_owner());
            }
        }
        for &owner in rest {
            if !is_counted(a, owner) {
                return Err(self.unknown_owner());
            }
        }
        let total = |at: usize| a[at] + b[at] + c[at] + d[at];
        Ok(((2..size).map(total).collect(), total(1)))
    }

    /// Names the first previous owner that does not exist.
    fn unknown_owner(&self) -> PlanError {
        let workers = self.slots.len();
        let is_unknown = |&owner: &u32| owner as usize >= workers && owner != NONE && owner != GONE;
        let partition = self
            .previous
            .iter()
            .position(is_unknown)
            .unwrap_or_default();
        PlanError::UnknownOwner {
            partition: partition as u32,
            owner: self.previous[partition],
            workers,
        }
    }
}

fn validate_weights(weights: &[u64], partitions: usize) -> Result<(), PlanError> {
    if weights.len() != partitions {
        return Err(PlanError::WeightCount {
            weights: weights.len(),
            partitions,
        });
    }
    let mut total = 0u64;
    for (partition, &weight) in weights.iter().enumerate() {
        if weight == 0 {
            return Err(PlanError::WeightZero {
                partition: partition as u32,
            });
        }
        total = total.saturating_add(weight);
    }
    if total > i64::MAX as u64 {
        return Err(PlanError::WeightTotal { total });
    }
    Ok(())
}

/// Why there is no plan. All of it is the caller's to fix; nothing was decided.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// A setting of [`Band`](super::Band) is not a number or out of its bounds.
    BandRange {
        /// The setting.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// The caps of all workers together are below the number of partitions.
    NoRoom {
        /// How many partitions there are.
        partitions: usize,
        /// How many partitions the workers may own together.
        room: u64,
    },
    /// No worker may own anything.
    NoWorkers,
    /// More partitions or workers than 32 bits can index.
    TooMany {
        /// How many partitions there are.
        partitions: usize,
        /// How many workers there are.
        workers: usize,
    },
    /// A previous owner is not among the slots.
    UnknownOwner {
        /// The partition.
        partition: u32,
        /// The owner it names.
        owner: u32,
        /// How many slots there are.
        workers: usize,
    },
    /// The number of weights differs from the number of partitions.
    WeightCount {
        /// How many weights there are.
        weights: usize,
        /// How many partitions there are.
        partitions: usize,
    },
    /// The weights add up to more than `i64::MAX`.
    WeightTotal {
        /// Their sum, or `u64::MAX` if it is beyond that too.
        total: u64,
    },
    /// A partition weighs nothing; the default weight is the caller's to apply.
    WeightZero {
        /// The partition.
        partition: u32,
    },
    /// A worker's weight is negative, not a number, or outside 1e-9 to 1e9.
    WorkerWeight {
        /// The worker.
        worker: u32,
        /// Its weight.
        weight: f64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BandRange { field, value } => {
                write!(f, "{field} of the band is out of range: {value}")
            }
            Self::NoRoom { partitions, room } => write!(
                f,
                "workers may own fewer partitions than there are: {room} of {partitions}"
            ),
            Self::NoWorkers => write!(f, "no worker may own partitions"),
            Self::TooMany {
                partitions,
                workers,
            } => {
                write!(f, "too many partitions or workers: {partitions}, {workers}")
            }
            Self::UnknownOwner {
                partition,
                owner,
                workers,
            } => write!(
                f,
                "previous owner of partition {partition} is not one of {workers} workers: {owner}"
            ),
            Self::WeightCount {
                weights,
                partitions,
            } => {
                write!(
                    f,
                    "as many weights as partitions are needed: {weights}, {partitions}"
                )
            }
            Self::WeightTotal { total } => {
                write!(f, "sum of weights exceeds {}: {total}", i64::MAX)
            }
            Self::WeightZero { partition } => {
                write!(f, "weight must be at least 1, partition {partition}")
            }
            Self::WorkerWeight { worker, weight } => {
                write!(
                    f,
                    "weight of worker {worker} must be 0 or 1e-9 to 1e9: {weight}"
                )
            }
        }
    }
}

impl std::error::Error for PlanError {}
