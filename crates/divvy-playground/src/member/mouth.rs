//! What a member says on its standard output.
//!
//! A hook says what it did before it returns. So a partition that is given back
//! was said to have stopped before anybody else can have it, also where the
//! process stands still right then.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use divvy::manager::now;
use divvy_core::Moment;

use super::line::Said;

/// Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Mouth {
    /// Whoever looks at the clock says it before another does. A handle of its
    /// own: who prints results may have locked the other.
    out: Arc<Mutex<File>>,
}

impl Mouth {
    pub(super) fn new() -> io::Result<Self> {
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            out: Arc::new(Mutex::new(out.into())),
        })
    }

    pub(super) fn say(&self, said: &Said) {
        self.say_now(|_at| said.clone());
    }

    /// Says something with the time that it is.
    pub(super) fn say_now(&self, said: impl FnOnce(u64) -> Said) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let said = said(nanos(now()));
        let mut line = serde_json::to_string(&said).expect("what is said has a JSON form");
        line.push('\n');
        // Whoever does not listen any more is gone, and this ends, too.
        let _unheard = out.write_all(line.as_bytes());
    }
}

/// A moment as it is said.
pub(super) fn nanos(moment: Moment) -> u64 {
    span(moment.to_origin())
}

pub(super) fn span(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
