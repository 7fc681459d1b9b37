//! `--previous @FILE`: what `assign --json` or `plan --json` printed.

use divvy::{Assignment, AssignmentDocument};

use super::file;
use crate::failure::Failure;

/// The assignment in force, where one was given.
pub(super) fn previous(text: Option<&str>) -> Result<Option<Assignment>, Failure> {
    let Some(text) = text else {
        return Ok(None);
    };
    let Some(path) = text.strip_prefix('@').filter(|path| !path.is_empty()) else {
        let rule = "must be @FILE, a file with what assign --json or plan --json printed";
        return Err(Failure::usage("previous", text, rule));
    };
    let json = file::text(path)?;
    let document = AssignmentDocument::from_json(&json);
    let assignment = document.and_then(|document| document.assignment());
    let assignment = assignment.map_err(|error| file::wrong(path, &error))?;
    tracing::debug!("read {} owners from {path}", assignment.partitions().len());
    Ok(Some(assignment))
}
