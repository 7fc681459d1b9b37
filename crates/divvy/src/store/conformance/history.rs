//! What was done in a case, for the one who has to find out why it failed.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};

/// Operations that a failure shows.
const LINES_MAX: usize = 60;
/// Longest line: values and batches can be large.
const LINE_BYTES_MAX: usize = 240;

/// The last operations of a case.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: Mutex<VecDeque<String>>,
}

impl History {
    pub(super) fn note(&self, line: fmt::Arguments<'_>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(brief(line));
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

/// The text, cut where it gets too long; the rest is not even formatted.
pub(super) fn brief(text: fmt::Arguments<'_>) -> String {
    let mut cut = Cut::default();
    if cut.write_fmt(text).is_err() {
        cut.text.push('…');
    }
    cut.text
}

#[derive(Default)]
struct Cut {
    text: String,
}

impl fmt::Write for Cut {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = LINE_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(&more[..more.floor_char_boundary(room)]);
        match more.len() <= room {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}
