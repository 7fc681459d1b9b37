//! Whether a process runs.

use std::fs;
use std::num::ParseIntError;
use std::str::FromStr;

/// Whether a process runs; one that is only yet to be waited for by its parent does not.
///
/// For children of the test: the id of any other process may be given to a new one.
pub fn is_alive(id: u32) -> bool {
    !matches!(state(id), None | Some(('Z' | 'X', _)))
}

/// The state of a process, and when it was started.
fn state(id: u32) -> Option<(char, u64)> {
    let about = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Its name comes before, and may be anything.
    let (_, fields) = about.rsplit_once(") ")?;
    // `proc_pid_stat(5)` counts from 1: the state is the third, the start the 22nd.
    let started = fields.split(' ').nth(22 - 3)?.parse().ok()?;
    Some((fields.chars().next()?, started))
}

/// A process by id and start: ids are given to other processes, and there are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId {
    /// Its id.
    pub id: u32,
    /// When it was started, in ticks since the system was.
    pub started: u64,
}

impl ProcessId {
    /// Whether it runs, as [`is_alive`].
    pub fn is_alive(self) -> bool {
        is_alive(self.id) && state(self.id).is_some_and(|(_, started)| started == self.started)
    }
}

/// Reads what a shell wrote with `echo $$ $(cut -d" " -f22 /proc/$$/stat)`.
impl FromStr for ProcessId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (id, started) = text.split_once(' ').unwrap_or((text, ""));
        Ok(Self {
            id: id.parse()?,
            started: started.parse()?,
        })
    }
}
