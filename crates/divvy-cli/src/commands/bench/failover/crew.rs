//! Workers as processes of this program.

use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use divvy::Moment;
use rustix::process::{Pid, Signal, kill_process};

use super::board::Board;

/// How often what was said is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// Longer than anything takes when all is well.
const PATIENCE: Duration = Duration::from_secs(120);
/// With more workers than these that end by themselves there is nothing to
/// measure.
const FAILURES_MAX: usize = 3;
/// How many of the last lines of a worker's stderr are kept.
const SAID_LINES_MAX: usize = 4;

/// A worker that runs.
struct Process {
    child: Child,
    /// Gives the last that it had to say, when it has ended.
    said: JoinHandle<String>,
}

/// The workers of one run.
pub(super) struct Crew {
    /// What each is started with.
    arguments: Vec<String>,
    /// The store, where a flag names it.
    store: Option<String>,
    board: Arc<Mutex<Board>>,
    /// By number; nothing where one is gone.
    processes: Vec<Option<Process>>,
    /// The number of each one's name: whoever replaces another has its name.
    names: Vec<usize>,
    pub(super) failed_starts: usize,
    /// Somebody wants this to end.
    interrupted: Arc<AtomicBool>,
}

impl Crew {
    pub(super) fn new(
        store: Option<String>,
        arguments: Vec<String>,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        Self {
            arguments,
            store,
            board: Arc::default(),
            processes: Vec::new(),
            names: Vec::new(),
            failed_starts: 0,
            interrupted,
        }
    }

    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker, under the first name that nobody has.
    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        let number = self.processes.len();
        let name = self.free_name();
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(["worker", "--deadlines", "--die-with-parent"]);
        if let Some(store) = &self.store {
            command.args(["--store", store]);
        }
        let mut child = command
            .args(["--instance", &format!("bench-{name}")])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a worker")?;
        self.board().joined();
        let out = child.stdout.take().context("a worker has no output")?;
        let err = child.stderr.take().context("a worker has no output")?;
        let said = std::thread::spawn(move || last_lines(err));
        let board = Arc::clone(&self.board);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // A killed process may end in the middle of a line.
                if let Ok(line) = serde_json::from_str(&line) {
                    let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
                    board.hear(number, &line);
                }
            }
        });
        self.processes.push(Some(Process { child, said }));
        self.names.push(name);
        Ok(())
    }

    fn free_name(&self) -> usize {
        let running = self.processes.iter().zip(&self.names);
        let running = running.filter(|(process, _)| process.is_some());
        let taken: BTreeSet<usize> = running.map(|(_, name)| *name).collect();
        (0..)
            .find(|name| !taken.contains(name))
            .expect("there are more names than workers")
    }

    /// A worker that leads, or one that does not.
    pub(super) fn find(&self, leads: bool) -> Option<usize> {
        let board = self.board();
        let fits = |number: &usize| {
            self.processes[*number].is_some() && board.members[*number].leads == leads
        };
        let numbers = (0..self.processes.len()).rev();
        numbers
            .filter(fits)
            .max_by_key(|number| board.members[*number].owned.len())
    }

    /// What a worker owns.
    pub(super) fn owned_by(&self, number: usize) -> BTreeSet<String> {
        self.board().members[number].owned.keys().cloned().collect()
    }

    /// Kills a worker, and says when that was.
    pub(super) fn kill(&mut self, number: usize) -> anyhow::Result<Moment> {
        let mut child = self.take(number)?;
        let at = divvy::manager::now();
        child.kill().context("cannot kill a worker")?;
        child.wait().context("a worker does not end")?;
        self.board().gone(number, divvy::manager::now(), false);
        Ok(at)
    }

    /// Asks a worker to end, and says when it was asked.
    pub(super) fn stop(&mut self, number: usize) -> anyhow::Result<Moment> {
        let mut child = self.take(number)?;
        let at = divvy::manager::now();
        kill_process(Pid::from_child(&child), Signal::TERM).context("cannot signal a worker")?;
        child.wait().context("a worker does not end")?;
        self.board().gone(number, divvy::manager::now(), true);
        Ok(at)
    }

    fn take(&mut self, number: usize) -> anyhow::Result<Child> {
        let process = self.processes[number].take();
        Ok(process.context("that worker is gone")?.child)
    }

    /// Waits until the board says so.
    pub(super) fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Board) -> Option<T>,
    ) -> anyhow::Result<T> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(&self.board()) {
                return Ok(found);
            }
            self.count_failed()?;
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(anyhow!("interrupted while waiting: {what}"));
            }
            if Instant::now() > end {
                return Err(anyhow!("not within {PATIENCE:?}: {what}"));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// A worker that ended by itself has failed, and says why.
    fn count_failed(&mut self) -> anyhow::Result<()> {
        for number in 0..self.processes.len() {
            let Some(process) = &mut self.processes[number] else {
                continue;
            };
            let Some(status) = process.child.try_wait().context("a worker is lost")? else {
                continue;
            };
            let said = self.processes[number]
                .take()
                .map(|process| process.said.join());
            let said = said.and_then(Result::ok).unwrap_or_default();
            self.failed_starts += 1;
            self.board().gone(number, divvy::manager::now(), false);
            let name = self.names[number];
            tracing::warn!("worker bench-{name} ended by itself ({status}): {said}");
            if self.failed_starts > FAILURES_MAX {
                let count = self.failed_starts;
                return Err(anyhow!(
                    "{count} workers ended by themselves, the last with: {said}"
                ));
            }
        }
        Ok(())
    }

    /// Whoever still runs is killed.
    pub(super) fn kill_all(&mut self) {
        for mut process in self.processes.iter_mut().filter_map(Option::take) {
            let _ended = process.child.kill();
            let _ended = process.child.wait();
        }
    }

    /// All that still run are asked to end.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        for number in 0..self.processes.len() {
            if self.processes[number].is_some() {
                self.stop(number)?;
            }
        }
        Ok(())
    }

    /// Memory of the worker in the middle that is its own, in bytes; nothing
    /// where the system does not tell.
    pub(super) fn memory(&self) -> Option<u64> {
        let running = self.processes.iter().flatten();
        let of = |process: &Process| {
            let status = format!("/proc/{}/status", process.child.id());
            let status = std::fs::read_to_string(status).ok()?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("RssAnon:"))?;
            let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
            Some(kilobytes * 1024)
        };
        let mut each: Vec<u64> = running.filter_map(of).collect();
        each.sort_unstable();
        each.get(each.len() / 2).copied()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// The last lines of a stream, read to its end.
fn last_lines(stream: impl Read) -> String {
    let mut kept = VecDeque::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if kept.len() == SAID_LINES_MAX {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    Vec::from(kept).join("; ")
}
