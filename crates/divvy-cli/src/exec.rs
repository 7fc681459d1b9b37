//! Commands that run for partitions: started, started again when they end, and
//! stopped in time. They never outlive this process, nor does what they start.

mod census;
mod child;
mod command_line;
mod killed;
mod leader;
mod open_files;
mod ourselves;
mod output;
mod run_child;
mod sweep;
mod sweeper;
mod tally;

pub(crate) use self::child::Running;
pub(crate) use self::command_line::CommandLine;
pub(crate) use self::leader::Leader;
pub(crate) use self::ourselves::ourselves;
pub(crate) use self::output::print;
pub(crate) use self::run_child::{become_command, end_with, end_with_parent};
pub(crate) use self::sweep::sweep;
pub(crate) use self::sweeper::Sweeper;
pub(crate) use self::tally::render as render_metrics;

use std::sync::Arc;
use std::time::Duration;

use divvy::Partition;
use divvy::manager::Grant;
use tokio::sync::mpsc;

use self::output::{Line, Output};
use crate::args::ExecArgs;
use crate::failure::Failure;

/// What commands write, to be printed; nothing where it goes to files.
pub(crate) type Lines = Option<mpsc::Receiver<Line>>;

/// Runs commands.
#[derive(Debug)]
pub(crate) struct Children {
    command: Arc<CommandLine>,
    grace: Duration,
    output: Output,
    sweeper: Arc<Sweeper>,
}

impl Children {
    /// What was asked for, and what has to be printed of the commands' output.
    pub(crate) fn new(exec: &str, args: &ExecArgs) -> Result<(Self, Lines), Failure> {
        let command = Arc::new(CommandLine::with_places("exec", exec)?);
        command.check_program("exec")?;
        command.warn();
        open_files::raise_limit();
        let (output, lines) = Output::new(args.output_dir.as_deref())?;
        let children = Self {
            command,
            grace: args.grace,
            output,
            sweeper: Sweeper::new(),
        };
        Ok((children, lines))
    }

    /// Begins to start the command of a partition, which `worker` has. What
    /// cannot be run is no owner's.
    pub(crate) fn begin(&self, worker: &str, partition: &Partition, grant: Grant) -> Running {
        Running::begin(child::RunConfig {
            worker: worker.into(),
            command: Arc::clone(&self.command),
            grace: self.grace,
            output: self.output.clone(),
            sweeper: Arc::clone(&self.sweeper),
            partition: partition.clone(),
            grant,
        })
    }
}
