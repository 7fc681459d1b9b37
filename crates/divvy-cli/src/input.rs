//! From what was typed to the library's sets.

mod agreement;
mod change;
mod count;
mod file;
mod option;
mod partitions;
mod previous;
mod workers;

pub(crate) use agreement::note_of_overlooked;
pub(crate) use change::{Change, Target};
pub(crate) use option::{Chosen, places_as};
pub(crate) use partitions::partitions;
pub(crate) use previous::previous;

use divvy::{Assignment, Partition, Partitions, WORKER_WEIGHT_DEFAULT, Worker, Workers};

use crate::args::PlacementArgs;
use crate::failure::Failure;
use previous::Previous;

/// The sets as far as they were given.
///
/// What was typed is read before something is said to be missing: a wrong
/// value is the more useful thing to hear of.
pub(crate) struct Given {
    workers: Option<Workers>,
    partitions: Option<Partitions>,
    previous: Option<Previous>,
}

impl Given {
    pub(crate) fn read(args: &PlacementArgs) -> Result<Self, Failure> {
        let workers = args.workers.as_deref();
        let workers = workers.map(|text| workers::workers("--workers", text));
        let workers = workers.transpose()?;
        let partitions = args.partitions.as_deref();
        let partitions = partitions.map(partitions::partitions).transpose()?;
        let mut given = Self {
            workers,
            partitions,
            previous: Previous::read(args.previous.as_deref())?,
        };
        if let Some(workers) = given.workers.clone() {
            given.describe_previous(&workers)?;
        }
        given.warn(args);
        Ok(given)
    }

    /// Says what does not seem to go together.
    fn warn(&self, args: &PlacementArgs) {
        let before = self.previous();
        if let (Some(before), Some(now)) = (before, &self.partitions) {
            let (before, now) = (before.partitions().iter(), now.iter());
            let names = (before.map(Partition::as_str), now.map(Partition::as_str));
            agreement::warn_of_names("partitions", names.0, names.1);
        }
        if let (Some(before), Some(now)) = (before, &self.workers) {
            let (before, now) = (before.workers().iter(), now.iter());
            let names = (before.map(Worker::id), now.map(Worker::id));
            agreement::warn_of_names("workers", names.0, names.1);
        }
        let weightless = self.partitions.as_ref();
        let chosen = args.options.default_weight.is_some();
        if let Some(partitions) = weightless.filter(|_| !chosen) {
            agreement::warn_of_weightless(partitions);
        }
    }

    /// The strategy that was chosen.
    pub(crate) fn chosen(&self, args: &PlacementArgs) -> Result<Chosen, Failure> {
        let previous = self.previous.as_ref();
        Chosen::read(args, previous.and_then(|previous| previous.made.as_ref()))
    }

    /// Takes weights and zones from here for workers of whom the assignment in
    /// force tells none.
    pub(crate) fn describe_previous(&mut self, known: &Workers) -> Result<(), Failure> {
        match &mut self.previous {
            Some(previous) => previous.describe_by(known),
            None => Ok(()),
        }
    }

    /// Whether the assignment in force tells weights and zones of its workers.
    pub(crate) fn is_previous_described(&self) -> bool {
        self.previous.as_ref().is_some_and(Previous::is_described)
    }

    /// The assignment in force.
    pub(crate) fn previous(&self) -> Option<&Assignment> {
        self.previous.as_ref().map(|previous| &previous.assignment)
    }

    /// The strategy that made the assignment in force, where that is told.
    pub(crate) fn previous_strategy(&self) -> Option<&str> {
        let made = self.previous.as_ref()?.made.as_ref()?;
        Some(&made.strategy)
    }

    /// Whether workers were named, and not only by the previous assignment.
    pub(crate) fn names_workers(&self) -> bool {
        self.workers.is_some()
    }

    /// The workers that were named, or else those of the previous assignment.
    pub(crate) fn workers(&self) -> Result<Workers, Failure> {
        let before = || self.previous().map(|previous| previous.workers().clone());
        let missing = || Failure::missing("--workers", workers::FORMS, "workers");
        self.workers.clone().or_else(before).ok_or_else(missing)
    }

    /// The partitions that were named, or else those of the previous
    /// assignment.
    pub(crate) fn partitions(&self) -> Result<Partitions, Failure> {
        let before = || {
            self.previous()
                .map(|previous| previous.partitions().clone())
        };
        let missing = || Failure::missing("--partitions", partitions::FORMS, "partitions");
        self.partitions.clone().or_else(before).ok_or_else(missing)
    }

    /// The partitions that were named.
    pub(crate) fn named_partitions(&self) -> Option<Partitions> {
        self.partitions.clone()
    }
}

/// The weight that workers usually have, and whether all have it: the median
/// of those that may own something, of two the lower.
fn usual_weight(workers: &Workers) -> (f64, bool) {
    let eligible = workers.iter().map(Worker::weight);
    let mut weights: Vec<f64> = eligible.filter(|&weight| weight > 0.0).collect();
    weights.sort_by(f64::total_cmp);
    let middle = weights.len().saturating_sub(1) / 2;
    match weights.get(middle) {
        Some(&weight) => (weight, weights.first() == weights.last()),
        None => (WORKER_WEIGHT_DEFAULT, true),
    }
}
