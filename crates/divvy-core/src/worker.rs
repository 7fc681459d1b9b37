//! Workers: who owns partitions.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Invalid};
use crate::name;

/// Longest id or zone of a worker, in bytes.
pub const WORKER_NAME_BYTES_MAX: usize = 256;
/// Most workers of one set.
pub const WORKERS_MAX: usize = 100_000;
/// Weight of a worker unless another is given.
pub const WORKER_WEIGHT_DEFAULT: f64 = 1.0;
/// Smallest weight above 0.
pub const WORKER_WEIGHT_MIN: f64 = 1e-6;
/// Largest weight.
pub const WORKER_WEIGHT_MAX: f64 = 1e6;

/// Whether a worker is fit to own partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It may own partitions.
    #[default]
    Healthy,
    /// It gets none.
    Unhealthy,
}

/// A worker: id, weight (its capacity in relation to the others), zone, health
/// and a limit to the number of its partitions.
///
/// ```
/// use divvy_core::{Health, Worker};
///
/// let worker = Worker::new("worker-7")?.with_weight(2.5)?.with_zone("eu-west-1a")?;
/// assert!(worker.is_eligible());
/// assert!(!worker.with_health(Health::Unhealthy).is_eligible());
/// assert!(Worker::new("w")?.with_weight(f64::NAN).is_err());
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    id: Box<str>,
    weight: f64,
    zone: Option<Box<str>>,
    health: Health,
    max_partitions: Option<NonZeroU32>,
}

impl Worker {
    /// A healthy worker of weight 1 without a zone. The id has
    /// 1..=[`WORKER_NAME_BYTES_MAX`] bytes and no control characters.
    pub fn new(id: impl Into<Box<str>>) -> Result<Self, Error> {
        let id = id.into();
        name::check("worker id", &id, WORKER_NAME_BYTES_MAX)?;
        Ok(Self {
            id,
            weight: WORKER_WEIGHT_DEFAULT,
            zone: None,
            health: Health::Healthy,
            max_partitions: None,
        })
    }

    /// The same worker with another weight: 0, which means that it gets
    /// nothing, or [`WORKER_WEIGHT_MIN`]..=[`WORKER_WEIGHT_MAX`].
    pub fn with_weight(self, weight: f64) -> Result<Self, Error> {
        if !is_weight(weight) {
            let rule = format!(
                "must be 0 or in {WORKER_WEIGHT_MIN}..={WORKER_WEIGHT_MAX} (worker '{}')",
                self.id
            );
            return Err(Invalid::new("worker weight", weight, rule).into());
        }
        // -0.0 compares equal to 0 but prints differently.
        let weight = weight.abs();
        Ok(Self { weight, ..self })
    }

    /// The same worker in a zone, named by the rules of ids.
    pub fn with_zone(self, zone: impl Into<Box<str>>) -> Result<Self, Error> {
        let zone = zone.into();
        name::check("worker zone", &zone, WORKER_NAME_BYTES_MAX)?;
        Ok(Self {
            zone: Some(zone),
            ..self
        })
    }

    /// The same worker in another state of health.
    pub fn with_health(self, health: Health) -> Self {
        Self { health, ..self }
    }

    /// The same worker with a limit to the number of its partitions, or
    /// without. Strategies that place by hash alone do not look at it.
    pub fn with_max_partitions(self, max_partitions: Option<NonZeroU32>) -> Self {
        Self {
            max_partitions,
            ..self
        }
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The weight.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The zone, where it has one.
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// The health.
    pub fn health(&self) -> Health {
        self.health
    }

    /// The most partitions that it may own, where there is a limit.
    pub fn max_partitions(&self) -> Option<NonZeroU32> {
        self.max_partitions
    }

    /// Whether it may own partitions: healthy and with a weight above 0.
    pub fn is_eligible(&self) -> bool {
        self.veto().is_none()
    }

    /// Why it may not own partitions, if that is so.
    pub fn veto(&self) -> Option<Veto> {
        if self.health == Health::Unhealthy {
            Some(Veto::Unhealthy)
        } else if self.weight == 0.0 {
            Some(Veto::ZeroWeight)
        } else {
            None
        }
    }
}

/// Why a worker does not get a partition, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Veto {
    /// The partition stays where it was, and this worker has its share, or is
    /// inside its band, without it.
    Enough,
    /// It owns as many of the heaviest partitions as one worker may.
    Extremes,
    /// It does not stand in the partition's bucket.
    Filtered,
    /// It owns as many partitions as its share or its limit allows.
    Full,
    /// It had the partition, and had too much or could spare it.
    GaveUp,
    /// A lighter worker was taken, by load in relation to weight.
    Heavier,
    /// A worker of a lighter zone was taken.
    HeavierZone,
    /// The worker that was taken is as light, and its id is the smaller one.
    Later,
    /// The zone of the worker that was taken is as light, and its name is the
    /// smaller one.
    LaterZone,
    /// The partition stays where it was: this worker has too little, but no
    /// move to it was found that helps.
    NoGain,
    /// With the partition it would be over the band, or over the narrower one
    /// that workers are filled up to.
    OverBand,
    /// With the partition its zone would be over its share.
    OverZone,
    /// What was left to place was needed by workers that lacked more.
    Reserved,
    /// Another worker was chosen, not because it was lighter: the partition
    /// has a worker of its own, or was moved where that helped most.
    Unchosen,
    /// It is unhealthy.
    Unhealthy,
    /// Its weight is 0.
    ZeroWeight,
}

impl fmt::Display for Veto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enough => "has enough without it",
            Self::Extremes => "has as many of the heaviest as it may",
            Self::Filtered => "in other buckets",
            Self::Full => "full",
            Self::GaveUp => "gave it up",
            Self::Heavier => "a lighter one was taken",
            Self::HeavierZone => "a lighter zone was taken",
            Self::Later => "as light, but later by id",
            Self::LaterZone => "as light, but its zone is later by name",
            Self::NoGain => "no move to it helped",
            Self::OverBand => "would have too much",
            Self::OverZone => "its zone would have too much",
            Self::Reserved => "others lacked more",
            Self::Unchosen => "another was chosen",
            Self::Unhealthy => "unhealthy",
            Self::ZeroWeight => "weight 0",
        })
    }
}

/// A set of workers: no two with one id, in the order of their ids.
///
/// Cloning is cheap, and the order in which the workers came does not matter.
#[derive(Clone, PartialEq)]
pub struct Workers {
    sorted: Arc<[Worker]>,
}

impl Workers {
    /// A set of the given workers, at most [`WORKERS_MAX`]. Two workers of one
    /// id are an error; an empty set is none until something is to be placed.
    pub fn new(workers: impl IntoIterator<Item = Worker>) -> Result<Self, Error> {
        let mut sorted: Vec<Worker> = workers.into_iter().take(WORKERS_MAX + 1).collect();
        if sorted.len() > WORKERS_MAX {
            let rule = format!("at most {WORKERS_MAX} are allowed");
            return Err(Invalid::new("worker count", sorted.len(), rule).into());
        }
        sorted.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(Invalid::new("worker id", pair[0].id(), "is given twice").into());
        }
        Ok(Self {
            sorted: sorted.into(),
        })
    }

    /// The workers `<prefix>-0` to `<prefix>-<count - 1>`, all of weight 1.
    pub fn numbered(prefix: &str, count: usize) -> Result<Self, Error> {
        if count > WORKERS_MAX {
            let rule = format!("at most {WORKERS_MAX} are allowed");
            return Err(Invalid::new("worker count", count, rule).into());
        }
        let workers: Result<Vec<_>, _> = (0..count)
            .map(|number| Worker::new(format!("{prefix}-{number}")))
            .collect();
        Self::new(workers?)
    }

    /// Healthy workers of weight 1 with these ids.
    ///
    /// ```
    /// let workers = divvy_core::Workers::of(["b", "a"])?;
    /// assert_eq!(workers.index_of("b"), Some(1));
    /// # Ok::<(), divvy_core::Error>(())
    /// ```
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let workers: Result<Vec<_>, _> = ids.into_iter().map(Worker::new).collect();
        Self::new(workers?)
    }

    /// How many there are, eligible or not.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The workers in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, Worker> {
        self.sorted.iter()
    }

    /// The workers in the order of their ids, by index.
    pub fn as_slice(&self) -> &[Worker] {
        &self.sorted
    }

    /// The index of the worker with this id.
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.sorted
            .binary_search_by(|worker| worker.id().cmp(id))
            .ok()
    }

    /// The indices of those that may own partitions, or
    /// [`Error::NoWorkers`] where there are none.
    pub fn eligible(&self) -> Result<Vec<u32>, Error> {
        let mut eligible = Vec::with_capacity(self.len());
        let mut unhealthy = 0;
        for (index, worker) in self.iter().enumerate() {
            match worker.veto() {
                None => eligible.push(index as u32),
                Some(Veto::Unhealthy) => unhealthy += 1,
                Some(_) => {}
            }
        }
        if eligible.is_empty() {
            return Err(Error::NoWorkers {
                given: self.len(),
                unhealthy,
                weightless: self.len() - unhealthy,
            });
        }
        Ok(eligible)
    }
}

/// Whether a worker can weigh that.
pub(crate) fn is_weight(weight: f64) -> bool {
    weight == 0.0 || (WORKER_WEIGHT_MIN..=WORKER_WEIGHT_MAX).contains(&weight)
}

impl<'a> IntoIterator for &'a Workers {
    type Item = &'a Worker;
    type IntoIter = std::slice::Iter<'a, Worker>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
