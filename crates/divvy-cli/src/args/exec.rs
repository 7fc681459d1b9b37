//! What runs for each partition.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use super::store::span;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running a command")]
pub(crate) struct ExecArgs {
    /// What to run for each partition that is owned
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// How long a command may take to end after SIGTERM, before SIGKILL
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = span)]
    pub(crate) grace: Duration,
    /// A directory for what commands write, one file each, in place of stdout and stderr
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,
}

/// A command that ends with the process that started it.
#[derive(Debug, clap::Args)]
pub(crate) struct ChildArgs {
    /// The process that started it
    #[arg(long)]
    pub(crate) parent: u32,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}
