//! A proposal as JSON: what `divvy plan --json` prints.

use serde::Serialize;

use super::{Change, Proposal};
use crate::assignment::{ASSIGNMENT_FORMAT, Assignment, AssignmentDocument, Balance, WorkerLoad};
use crate::plan::Certificate;
use crate::strategy::StrategyOptions;

/// The JSON form of a [`Proposal`] and of the assignment that it starts from.
///
/// [`AssignmentDocument::from_json`] reads it too and takes what is `after`, so
/// that one plan can start from another.
#[derive(Debug, Clone, Serialize)]
pub struct PlanDocument {
    format: u32,
    strategy: String,
    #[serde(skip_serializing_if = "StrategyOptions::is_empty")]
    options: StrategyOptions,
    before: Before,
    after: After,
    /// How many partitions that had an owner get another one.
    moves: u32,
    moved_fraction: f64,
    moved_weight_fraction: f64,
    /// No assignment that is as balanced has fewer moves.
    minimum_moves: u32,
    /// How many of the moves are of partitions whose owner left.
    orphans: u32,
    certificate: Certificate,
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Serialize)]
struct Before {
    #[serde(flatten)]
    balance: Balance,
    workers: Vec<WorkerLoad>,
}

#[derive(Debug, Clone, Serialize)]
struct After {
    #[serde(flatten)]
    balance: Balance,
    #[serde(flatten)]
    assignment: AssignmentDocument,
}

impl PlanDocument {
    /// The JSON form of `proposal`, made by the strategy of this name from
    /// `previous`.
    pub fn new(strategy: &str, previous: &Assignment, proposal: &Proposal) -> Self {
        let Proposal {
            assignment,
            changes,
            certificate,
            considered: _,
        } = proposal;
        let total: u64 = assignment.partitions().loads().sum();
        let part = |some: f64, all: f64| if all == 0.0 { 0.0 } else { some / all };
        Self {
            format: ASSIGNMENT_FORMAT,
            strategy: strategy.to_owned(),
            options: StrategyOptions::default(),
            before: Before {
                balance: previous.balance(),
                workers: WorkerLoad::of(previous),
            },
            after: After {
                balance: assignment.balance(),
                assignment: AssignmentDocument::of(assignment),
            },
            moves: certificate.moves,
            moved_fraction: part(
                f64::from(certificate.moves),
                assignment.partitions().len() as f64,
            ),
            moved_weight_fraction: part(certificate.moved_weight as f64, total as f64),
            minimum_moves: certificate.lower_bound,
            orphans: certificate.orphans,
            certificate: *certificate,
            changes: changes.clone(),
        }
    }

    /// The same with the options that the strategy was given, of which those
    /// that are not the default ones are kept.
    pub fn with_options(self, options: &StrategyOptions) -> Self {
        Self {
            options: options.unusual(),
            ..self
        }
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("strings, finite numbers and string-keyed maps always serialise")
    }
}
