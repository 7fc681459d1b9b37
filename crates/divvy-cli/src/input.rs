//! From what was typed to the library's sets.

mod change;
mod count;
mod file;
mod option;
mod partitions;
mod previous;
mod workers;

pub(crate) use change::Change;
pub(crate) use option::{band_width, strategy};
pub(crate) use partitions::partitions;

use divvy::{Assignment, Partitions, Workers};

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
        Ok(Self {
            workers,
            partitions,
            previous: Previous::read(args.previous.as_deref())?,
        })
    }

    /// The assignment in force.
    pub(crate) fn previous(&self) -> Option<&Assignment> {
        self.previous.as_ref().map(|previous| &previous.assignment)
    }

    /// The strategy that made the assignment in force, where that is told.
    pub(crate) fn previous_strategy(&self) -> Option<&str> {
        self.previous.as_ref()?.strategy.as_deref()
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
