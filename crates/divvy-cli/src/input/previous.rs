//! `--previous @FILE`: what `assign --json` or `plan --json` printed.

use divvy::{Assignment, AssignmentDocument};

use super::file::Source;
use crate::failure::Failure;

/// Largest file that is read. What is printed takes more than the list that it
/// was made of: it is indented, and has weights and moves too.
const PREVIOUS_BYTES_MAX: u64 = 4 << 30;

/// The assignment in force.
pub(super) struct Previous {
    pub(super) assignment: Assignment,
    /// The strategy that made it, where the file tells.
    pub(super) strategy: Option<String>,
}

impl Previous {
    /// The one that was given, where one was.
    pub(super) fn read(text: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(text) = text else {
            return Ok(None);
        };
        let source = Source::of("--previous", text);
        let Some(source) = source.filter(|source| !source.path().is_empty()) else {
            let rule = "must be @FILE, a file with what assign --json or plan --json printed";
            return Err(Failure::usage("previous", text, rule));
        };
        let json = source.text(PREVIOUS_BYTES_MAX)?;
        let document =
            AssignmentDocument::from_json(&json).map_err(|error| source.wrong(&error))?;
        drop(json);
        let strategy = document.strategy().map(str::to_owned);
        let assignment = document.assignment();
        let assignment = assignment.map_err(|error| source.wrong(&error))?;
        let (count, path) = (assignment.partitions().len(), source.path());
        tracing::debug!("read {count} owners from {path}");
        Ok(Some(Self {
            assignment,
            strategy,
        }))
    }
}
