//! Ends what commands have started, if this process is killed: a process beside
//! it knows their process groups, and ends them when it hears nothing more.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use anyhow::Context as _;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use super::ourselves::ourselves;
use crate::failure::{Failure, plain};
use crate::runtime;
use crate::voice::say;

/// What the process beside says when no signal but the last ends it.
const READY: &str = "ready\n";

/// The process groups of commands that run.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    groups: BTreeSet<i32>,
    process: Option<Child>,
    /// Counts processes.
    number: u64,
}

impl Sweeper {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the process beside ready, before there is anything to end. Waits for
    /// it, where it has to be started.
    pub(crate) fn begin(self: &Arc<Self>) -> io::Result<()> {
        let mut known = self.known();
        match known.process {
            Some(_) => Ok(()),
            None => self.start(&mut known),
        }
    }

    /// Nothing of this group outlives this process.
    pub(crate) fn add(self: &Arc<Self>, group: Pid) -> io::Result<()> {
        let mut known = self.known();
        let number = group.as_raw_nonzero().get();
        known.groups.insert(number);
        match known.tell(&format!("+{number}\n")) {
            true => Ok(()),
            // The next one is told everything.
            false => self.start(&mut known),
        }
    }

    /// The group is gone.
    pub(crate) fn remove(&self, group: Pid) {
        let mut known = self.known();
        let number = group.as_raw_nonzero().get();
        known.groups.remove(&number);
        if !known.tell(&format!("-{number}\n")) {
            known.end();
        }
    }

    /// Starts the process beside, and tells it everything.
    fn start(self: &Arc<Self>, known: &mut Known) -> io::Result<()> {
        known.end();
        let mut process = ourselves()?
            .arg("sweep-children")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // No terminal's signals.
            .process_group(0)
            .spawn()?;
        let pipes = process.stdin.as_mut().zip(process.stdout.take());
        let (pipe, heard) = pipes.expect("both are piped");
        let all: String = known
            .groups
            .iter()
            .map(|group| format!("+{group}\n"))
            .collect();
        pipe.write_all(all.as_bytes())?;
        // It reads at once; if not, nobody here waits for it.
        fcntl_setfl(&*pipe, OFlags::NONBLOCK)?;
        let mut heard = BufReader::new(heard);
        let mut word = String::new();
        heard.read_line(&mut word)?;
        if word != READY {
            let _gone = process.kill();
            let _gone = process.wait();
            let why = "the process that ends what commands start has ended itself";
            return Err(io::Error::other(why));
        }
        known.number += 1;
        known.process = Some(process);
        let (this, number) = (Arc::downgrade(self), known.number);
        let watching = std::thread::Builder::new().name("sweeper".to_owned());
        watching.spawn(move || watch(&this, heard, number))?;
        Ok(())
    }
}

/// Starts a successor when the process of this number ends while it is needed.
fn watch(sweeper: &Weak<Sweeper>, mut heard: impl io::Read, number: u64) {
    // It says nothing more: this returns when it is gone.
    let _end = io::copy(&mut heard, &mut io::sink());
    let Some(sweeper) = sweeper.upgrade() else {
        return;
    };
    let mut known = sweeper.known();
    if known.process.is_none() || known.number != number {
        return;
    }
    let became = match sweeper.start(&mut known) {
        Ok(()) => "another one has taken its place".to_owned(),
        Err(error) => format!("it cannot be started again yet: {}", plain(&error)),
    };
    say!("warning: the process that ends what commands start was killed; {became}");
}

impl Known {
    /// Whether the process could be told.
    fn tell(&mut self, change: &str) -> bool {
        let pipe = self.process.as_mut().and_then(|it| it.stdin.as_mut());
        pipe.is_some_and(|pipe| pipe.write_all(change.as_bytes()).is_ok())
    }

    /// Ends the process, which is of no use any more.
    fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _gone = process.kill();
            let _gone = process.wait();
        }
    }
}

/// Is the process beside: listens until nobody speaks any more.
pub(crate) fn sweep() -> Result<(), Failure> {
    // A service manager asks all processes to end at once; this one is the last.
    let runtime = runtime::here().map_err(Failure::Failed)?;
    let _entered = runtime.enter();
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        // From now on it does nothing, whether somebody waits for it or not.
        let _unheard = signal(kind).context("signals").map_err(Failure::Failed)?;
    }
    let mut out = io::stdout();
    // Who does not hear it is gone, and so are its commands.
    let _heard = out.write_all(READY.as_bytes()).and_then(|()| out.flush());
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
