//! Ends what commands have started, if this process is killed: a process beside
//! it knows their process groups, and ends them when it hears nothing more.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use super::ourselves::ourselves;
use crate::failure::Failure;

/// The process groups of commands that run.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    groups: BTreeSet<i32>,
    process: Option<Child>,
}

impl Sweeper {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing of this group outlives this process.
    pub(crate) fn add(&self, group: Pid) -> io::Result<()> {
        let mut known = self.known();
        let number = group.as_raw_nonzero().get();
        known.groups.insert(number);
        known.tell(&format!("+{number}\n"))
    }

    /// The group is gone.
    pub(crate) fn remove(&self, group: Pid) {
        let mut known = self.known();
        let number = group.as_raw_nonzero().get();
        known.groups.remove(&number);
        if known.tell(&format!("-{number}\n")).is_err() {
            // It is told everything that still counts when the next one begins.
            known.process = None;
        }
    }
}

impl Known {
    /// Tells the process; one that is gone or does not listen gets a successor,
    /// which is told everything.
    fn tell(&mut self, change: &str) -> io::Result<()> {
        if let Some(process) = &mut self.process {
            let told = process
                .stdin
                .as_mut()
                .map(|pipe| pipe.write_all(change.as_bytes()));
            if matches!(told, Some(Ok(()))) {
                return Ok(());
            }
            let _gone = process.kill();
            let _gone = process.wait();
        }
        let mut process = ourselves()?
            .arg("sweep-children")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // No terminal's signals.
            .process_group(0)
            .spawn()?;
        if let Some(pipe) = &mut process.stdin {
            let all: String = self
                .groups
                .iter()
                .map(|group| format!("+{group}\n"))
                .collect();
            pipe.write_all(all.as_bytes())?;
            // It reads at once; if not, nobody here waits for it.
            fcntl_setfl(&*pipe, OFlags::NONBLOCK)?;
        }
        self.process = Some(process);
        Ok(())
    }
}

/// Is the process beside: listens until nobody speaks any more.
pub(crate) fn sweep() -> Result<(), Failure> {
    // A service manager asks all processes to end at once; this one is the last.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")
        .map_err(Failure::Failed)?;
    let _entered = runtime.enter();
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        // From now on it does nothing, whether somebody waits for it or not.
        let _unheard = signal(kind).context("signals").map_err(Failure::Failed)?;
    }
    let mut groups = HashSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let number = |text: &str| text.parse().ok().and_then(Pid::from_raw);
        match line.split_at_checked(1) {
            Some(("+", text)) => groups.extend(number(text)),
            Some(("-", text)) => {
                number(text).map(|group| groups.remove(&group));
            }
            _ => {}
        }
    }
    for group in groups {
        // Who is gone already needs no signal.
        let _gone = kill_process_group(group, Signal::KILL);
    }
    Ok(())
}
