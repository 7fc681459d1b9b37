//! The part of this program that becomes a command.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use divvy::Moment;
use divvy::manager::now;
use rustix::process::Signal;

use crate::args::ChildArgs;
use crate::failure::Failure;

/// Becomes the command when the process that started this says until when it
/// may run, unless that is over. What prevents it is said to that process, which
/// hears nothing more when the command is there.
pub(crate) fn become_command(args: &ChildArgs) -> Result<(), Failure> {
    let starter = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)
        .context("nobody to tell")
        .map_err(Failure::Failed)?;
    let mut starter = UnixStream::from(starter);
    let refusal = refusal(args, &starter);
    if starter.write_all(refusal.to_string().as_bytes()).is_ok() {
        // That process tells it.
        std::process::exit(1);
    }
    Err(refusal)
}

/// Tells a process that is about to become a command until when it may run.
pub(super) fn permission(until: Moment) -> String {
    format!("{}\n", until.to_origin().as_nanos())
}

/// Sees to it that this process ends with the one that started it.
pub(crate) fn end_with_parent() -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot end with the parent")
        .map_err(Failure::Failed)
}

/// The same where that one is known, and may have ended already.
pub(crate) fn end_with(parent: u32) -> Result<(), Failure> {
    end_with_parent()?;
    let found = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
    if found == Some(parent) {
        Ok(())
    } else {
        // It was gone before that could be settled.
        Err(Failure::Failed(anyhow!("who started it has ended")))
    }
}

/// Why this did not become the command.
fn refusal(args: &ChildArgs, starter: &UnixStream) -> Failure {
    if let Err(failure) = end_with(args.parent) {
        return failure;
    }
    let [command, arguments @ ..] = args.command.as_slice() else {
        return Failure::Usage("a command is missing".to_owned());
    };
    let mut becoming = std::process::Command::new(command);
    becoming.args(arguments).stdin(Stdio::null());
    let until = match permitted_until(starter) {
        Ok(until) => until,
        Err(error) => return Failure::Failed(error),
    };
    // The last moment: whoever said so may stand still since.
    if now() >= until {
        return Failure::Failed(anyhow!("its lease ended before it was started"));
    }
    let error = becoming.exec();
    let command = command.display();
    Failure::Failed(anyhow!("cannot run {command}: {error}"))
}

/// Waits until this may become the command.
fn permitted_until(starter: &UnixStream) -> anyhow::Result<Moment> {
    let mut line = String::new();
    BufReader::new(starter).read_line(&mut line)?;
    let nanos = line.trim_end().parse();
    let nanos: u128 = nanos.context("who started it has not let it start")?;
    let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
    Ok(Moment::from_origin(Duration::from_nanos(nanos)))
}
