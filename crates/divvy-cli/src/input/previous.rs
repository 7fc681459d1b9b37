//! `--previous @FILE`: what `assign --json` or `plan --json` printed, or who owns
//! what in another system.

use std::collections::BTreeSet;

use divvy::listing::{self, Form};
use divvy::{Assignment, AssignmentDocument, StrategyOptions, StrategySettings, Worker, Workers};

use super::file::{self, Source};
use super::usual_weight;
use crate::failure::Failure;

/// Largest file that is read. What is printed takes more than the list that it
/// was made of: it is indented, and has weights and moves too.
const PREVIOUS_BYTES_MAX: u64 = 4 << 30;

/// The assignment in force, where one was given.
pub(crate) fn previous(text: Option<&str>) -> Result<Option<Assignment>, Failure> {
    Ok(Previous::read(text)?.map(|previous| previous.assignment))
}

/// The strategy that made an assignment.
pub(super) struct Made {
    pub(super) strategy: String,
    options: StrategyOptions,
}

impl Made {
    /// The strategy and its options, where this release knows it.
    pub(super) fn settings(&self) -> Option<StrategySettings> {
        let name = self.strategy.parse().ok()?;
        let options = self.options.clone();
        Some(StrategySettings { name, options })
    }
}

/// The assignment in force, and where it comes from.
pub(super) struct Previous {
    pub(super) assignment: Assignment,
    /// What made it, where the file tells.
    pub(super) made: Option<Made>,
    /// The workers of which the file tells more than what they own.
    described: BTreeSet<String>,
}

impl Previous {
    /// The one that was given, where one was.
    pub(super) fn read(text: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(text) = text else {
            return Ok(None);
        };
        let source = Source::of("--previous", text);
        let Some(source) = source.filter(|source| !source.path().is_empty()) else {
            let meant = file::meant(text).map(|meant| format!("; {meant}"));
            let rule = format!(
                "must be @FILE, a file with what assign --json or plan --json printed, or with \
                 who owns what{}",
                meant.unwrap_or_default()
            );
            return Err(Failure::usage("previous", text, rule));
        };
        let previous = Self::of_file(source)?;
        let (count, path) = (previous.assignment.partitions().len(), source.path());
        tracing::debug!("read {count} owners from {path}");
        Ok(Some(previous))
    }

    /// CSV and YAML by the ending of the file's name; anything else is JSON,
    /// unless it is a pipe, which has no name and is what it looks like.
    fn of_file(source: Source<'_>) -> Result<Self, Failure> {
        let text = source.text(PREVIOUS_BYTES_MAX)?;
        let form = match source.named_form() {
            None if source.is_nameless() => Form::of_text(&text),
            form => form.unwrap_or(Form::Json),
        };
        if form != Form::Json || text.trim_start().starts_with('[') {
            let mut notes = Vec::new();
            let owners = listing::owners_noting(form, &text, &mut notes);
            let assignment = owners.map_err(|fault| source.wrong(&fault))?;
            source.warn_of(&notes);
            if assignment.owners().is_empty() {
                return Err(source.wrong(&"has no owners"));
            }
            return Ok(Self {
                assignment,
                made: None,
                described: BTreeSet::new(),
            });
        }
        let wrong = |error: divvy::Error| source.wrong(&error);
        let document = AssignmentDocument::from_json(&text).map_err(wrong)?;
        drop(text);
        let described = document.workers().iter();
        Ok(Self {
            made: document.strategy().map(|strategy| Made {
                strategy: strategy.to_owned(),
                options: document.options().clone(),
            }),
            described: described.map(|worker| worker.id.clone()).collect(),
            assignment: document.assignment().map_err(wrong)?,
        })
    }

    /// Whether the file tells more of every worker than what it owns.
    pub(super) fn is_described(&self) -> bool {
        let mut workers = self.assignment.workers().iter();
        workers.all(|worker| self.described.contains(worker.id()))
    }

    /// Takes weights and zones from elsewhere for the workers of which the
    /// file tells no more than what they own: loads are to be compared by what
    /// they can bear.
    pub(super) fn describe_by(&mut self, known: &Workers) -> Result<(), Failure> {
        if self.is_described() {
            return Ok(());
        }
        let usual = usual_weight(known).0;
        let described = |worker: &Worker| -> Result<Worker, divvy::Error> {
            let index = known.index_of(worker.id());
            let Some(index) = index.filter(|_| !self.described.contains(worker.id())) else {
                return Ok(worker.clone());
            };
            let known = &known.as_slice()[index];
            // Who is to get nothing has something now.
            let weight = match known.weight() {
                0.0 => usual,
                weight => weight,
            };
            let worker = worker.clone().with_weight(weight)?;
            match known.zone() {
                Some(zone) => worker.with_zone(zone),
                None => Ok(worker),
            }
        };
        let workers = self.assignment.workers().iter().map(described);
        let workers = Workers::new(workers.collect::<Result<Vec<_>, _>>()?)?;
        let owners = self.assignment.owners().to_vec();
        self.assignment = Assignment::new(&workers, self.assignment.partitions(), owners)?;
        Ok(())
    }
}
