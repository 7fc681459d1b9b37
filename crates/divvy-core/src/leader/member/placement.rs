//! Asking the strategy. It may be the user's own: whatever it does wrong, the
//! last root stays.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::roster::Roster;
use crate::assignment::Assignment;
use crate::error::Error;
use crate::moves::Considered;
use crate::partition::{Partition, Partitions};
use crate::plan::Cause;
use crate::proposal::Rejected;
use crate::strategy::Strategy;
use crate::worker::Workers;

/// What a strategy is asked to place, and what it knows.
#[derive(Debug, Clone)]
pub(super) struct Question<'a> {
    pub(super) roster: &'a Roster,
    pub(super) partitions: &'a Partitions,
    /// By index of the partition: whether the strategy has a say in it.
    pub(super) is_open: &'a [bool],
    /// By index of the partition: who has it, or shall get it, by place in the
    /// roster.
    pub(super) owners: &'a [Option<usize>],
}

/// Where partitions belong.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// By index of the partition, the place in the roster.
    pub(super) targets: Vec<Option<usize>>,
    /// Why those move that do.
    pub(super) causes: BTreeMap<String, (Cause, Option<Rejected>)>,
    /// How workers rank for some of them.
    pub(super) considered: BTreeMap<String, Vec<Considered>>,
    /// By index of the partition, who had it before this cluster began. Empty
    /// where there is nothing to take over.
    pub(super) inherited: Vec<Option<usize>>,
}

impl Answer {
    /// Leaves with whoever had it what is to be taken over.
    pub(super) fn inherit(&mut self, inherited: Vec<Option<usize>>) {
        for (target, heir) in self.targets.iter_mut().zip(&inherited) {
            *target = heir.or(*target);
        }
        self.inherited = inherited;
    }

    /// Strategies do not know who cannot start what: such a partition stays
    /// with whoever has it and can, or goes to whoever has the least to bear.
    /// Where nobody can, the strategy has its way.
    pub(super) fn spare_the_unable(&mut self, question: &Question<'_>) {
        let roster = question.roster;
        if !roster.is_anyone_unable() {
            return;
        }
        let mut loads = vec![0.0; roster.candidates.len()];
        let sizes: Vec<f64> = question
            .partitions
            .loads()
            .map(|load| load as f64)
            .collect();
        for (target, size) in self.targets.iter().zip(&sizes) {
            if let Some(place) = target {
                loads[*place] += size / roster.candidates[*place].weight;
            }
        }
        for (index, partition) in question.partitions.iter().enumerate() {
            let name = partition.as_str();
            let Some(place) = self.targets[index].filter(|place| !roster.takes(*place, name))
            else {
                continue;
            };
            let share = |place: usize| sizes[index] / roster.candidates[place].weight;
            let owner = question.owners[index].filter(|owner| roster.takes(*owner, name));
            let lightest = || {
                let takers = roster.takers(name);
                let after = |place: &usize| loads[*place] + share(*place);
                takers.min_by(|one, other| after(one).total_cmp(&after(other)))
            };
            let Some(instead) = owner.or_else(lightest) else {
                continue;
            };
            loads[place] -= share(place);
            loads[instead] += share(instead);
            self.targets[index] = Some(instead);
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The strategy failed, in words.
    Failed(String),
    /// The strategy is still calculating.
    Unfinished,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Unfinished { .. } => Self::Unfinished,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Question<'_> {
    /// Nothing where nobody is eligible.
    pub(super) fn ask(&self, strategy: &dyn Strategy) -> Result<Option<Answer>, Refusal> {
        let eligible: Vec<_> = self
            .roster
            .eligible()
            .filter_map(|c| c.to_worker())
            .collect();
        if eligible.is_empty() {
            return Ok(None);
        }
        let workers = Workers::new(eligible)?;
        let open = self.open_partitions()?;
        let previous = self.previous(&workers)?;
        let propose = || strategy.propose(&workers, &open, previous.as_ref());
        let proposal = catch_unwind(AssertUnwindSafe(propose))
            .map_err(|_panic| format!("the strategy {} panicked", strategy.name()))??;
        let targets = self.targets(&open, &proposal.assignment)?;
        let changes = proposal.changes.into_iter();
        Ok(Some(Answer {
            targets,
            causes: changes
                .map(|change| (change.partition, (change.cause, change.rejected)))
                .collect(),
            considered: proposal.considered,
            inherited: Vec::new(),
        }))
    }

    fn subset(&self, keep: impl Fn(usize) -> bool) -> Result<Partitions, String> {
        let all = self.partitions.as_slice().iter().enumerate();
        let kept: Vec<Partition> = all
            .filter(|(index, _)| keep(*index))
            .map(|(_, partition)| partition.clone())
            .collect();
        Partitions::new(kept)
            .and_then(|set| set.with_default_weight(self.partitions.default_weight()))
            .map_err(|error| error.to_string())
    }

    fn open_partitions(&self) -> Result<Partitions, String> {
        if self.is_open.iter().all(|is_open| *is_open) {
            return Ok(self.partitions.clone());
        }
        self.subset(|index| self.is_open[index])
    }

    /// The assignment in force, of what is open and has an owner who may have
    /// it.
    fn previous(&self, workers: &Workers) -> Result<Option<Assignment>, String> {
        let owner = |index: usize| {
            let place = self.owners[index].filter(|_| self.is_open[index])?;
            workers.index_of(&self.roster.candidates[place].id)
        };
        let owners: Vec<u32> = (0..self.partitions.len())
            .filter_map(|index| owner(index).map(|worker| worker as u32))
            .collect();
        if owners.is_empty() {
            return Ok(None);
        }
        let owned = if owners.len() == self.partitions.len() {
            self.partitions.clone()
        } else {
            self.subset(|index| owner(index).is_some())?
        };
        Assignment::new(workers, &owned, owners)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    /// The owners that a strategy gave, if they are whole and may own.
    fn targets(
        &self,
        open: &Partitions,
        assignment: &Assignment,
    ) -> Result<Vec<Option<usize>>, String> {
        if assignment.partitions() != open {
            return Err("the strategy's assignment is not of the partitions asked".to_owned());
        }
        let places: Vec<Option<usize>> = assignment
            .workers()
            .iter()
            .map(|worker| {
                let place = self.roster.place_of(worker.id())?;
                self.roster.candidates[place].is_eligible.then_some(place)
            })
            .collect();
        let mut owners = assignment.owners().iter();
        let mut targets = vec![None; self.partitions.len()];
        for (target, _) in targets
            .iter_mut()
            .zip(self.is_open)
            .filter(|(_, open)| **open)
        {
            let owner = owners.next().expect("as many owners as open partitions");
            *target = places[*owner as usize];
            if target.is_none() {
                return Err("the strategy chose a worker that may own nothing".to_owned());
            }
        }
        Ok(targets)
    }
}
