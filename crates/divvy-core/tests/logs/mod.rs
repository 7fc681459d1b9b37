//! Collects what is logged while a closure runs.
#![allow(dead_code, reason = "not every test looks at every level")]

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The warnings that `action` logs, a line each.
pub(crate) fn warnings_of(action: impl FnOnce()) -> Vec<String> {
    lines_of(tracing::Level::WARN, action)
}

/// What `action` logs at DEBUG, a line each.
pub(crate) fn debug_lines_of(action: impl FnOnce()) -> Vec<String> {
    lines_of(tracing::Level::DEBUG, action)
}

fn lines_of(level: tracing::Level, action: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_ansi(false)
        .with_max_level(level)
        .finish();
    tracing::subscriber::with_default(subscriber, action);
    let bytes = lines.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    let wanted = level.as_str();
    text.lines()
        .filter(|line| line.contains(wanted))
        .map(str::to_owned)
        .collect()
}
