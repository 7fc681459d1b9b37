//! Runs what the guides tell people to run, in order, as it stands there.
//!
//! ```text
//! docs-check [--tested] README.md docs/operating.md …
//! ```
//!
//! Every fenced block is checked: `console` and `sh` by running their commands
//! (and comparing what is printed, where that is shown), `rust` by the
//! documentation tests, anything else by what the comment above it names. With
//! `--tested` the command that runs all tests has just passed, and is not run
//! again. `text` is for people alone.

mod checker;
mod directive;
mod document;
mod running;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::checker::Checker;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let (flags, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let is_known = flags.iter().all(|flag| flag == "--tested");
    if files.is_empty() || !is_known {
        eprintln!("docs-check: give documents, and --tested if the tests have just passed");
        return ExitCode::from(2);
    }
    let mut checker = Checker::new(!flags.is_empty());
    for file in &files {
        checker.check(&PathBuf::from(file)).await;
    }
    checker.finish()
}
