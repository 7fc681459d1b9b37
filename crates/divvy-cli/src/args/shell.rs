//! What may be typed after the commands that serve a shell: completions and
//! manual pages.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// A shell that there is a script for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// A line that is being typed.
#[derive(Debug, clap::Args)]
pub(crate) struct WordsArgs {
    /// Its words behind the program's name; the last is the one to complete
    #[arg(last = true)]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// A directory for the pages of all commands; it is made where it is missing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}
