//! What a passed test has to say.

use std::io::{self, Write};

/// Shows a line in the test run also if the test passes, when what it prints is not shown.
pub fn announce(line: &str) {
    // The harness keeps what the macros print, and nothing else. Where stderr is gone there is
    // nobody left to tell.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
