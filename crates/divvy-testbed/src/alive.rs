//! Whether a process runs.

use std::fs;

/// Whether a process runs; one that is only yet to be waited for by its parent does not.
pub fn is_alive(id: u32) -> bool {
    let about = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // Its name comes before, and may be anything.
    let state = about.rsplit_once(") ").map(|(_, state)| state);
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}
