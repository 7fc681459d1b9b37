//! The agent's side of the sweeper, the process (`divvy sweep-children`) that
//! ends commands when this one cannot: when it is killed, and when it stands
//! still while leases end. The sweeper is told which process groups there are
//! and until when they may run, and answers; one that does not is replaced.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use divvy::Moment;
use divvy::manager::Lease;
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::census::{Census, CommandRun};
use super::leader::Leader;
use super::ourselves::ourselves;
use crate::failure::plain;
use crate::voice::say;

/// What the sweeper writes when no signal but SIGKILL ends it.
pub(super) const READY: &str = "ready\n";
/// How long it may take to answer. One that stands still ends no commands, and
/// starts and stops wait for it.
const ANSWER_MAX: Duration = if cfg!(test) {
    // Unit tests wait for an answer, on a machine that does much else.
    Duration::from_secs(60)
} else {
    Duration::from_secs(5)
};
/// How often it has to answer although nothing has changed.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait before another one is started, at first and after many
/// times in a row.
const RESTART_FIRST: Duration = Duration::from_millis(50);
const RESTART_LONGEST: Duration = Duration::from_secs(5);

/// The process groups of commands that run.
#[derive(Debug)]
pub(crate) struct Sweeper {
    state: Mutex<State>,
    /// There is something to write.
    changed: Arc<Notify>,
    progress: watch::Sender<Progress>,
    census: Arc<Census>,
}

/// How far the sweeper is.
#[derive(Debug)]
struct Progress {
    status: Status,
    /// How many changes it knows.
    written: u64,
}

#[derive(Debug)]
enum Status {
    Starting,
    Running,
    /// There is none, and why.
    Down(String),
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<i32, Group>,
    leases: BTreeMap<u64, WatchedLease>,
    /// Counts leases.
    last_lease: u64,
    outbox: Outbox,
    /// Whether a task starts sweepers, as long as they are needed.
    is_supervised: bool,
}

#[derive(Debug)]
struct Group {
    mark: Box<str>,
    started: u64,
    /// Without one it may run for as long as this process.
    lease: Option<u64>,
}

/// A lease whose end the sweeper has to know.
#[derive(Debug)]
struct WatchedLease {
    lease: Lease,
    /// Nanoseconds of the clock that counts suspends; 0 if it has ended.
    until: u64,
    groups: usize,
    task: AbortHandle,
}

/// What is to be written. Renewals replace each other, so that it does not grow
/// while nobody reads it.
#[derive(Debug, Default)]
struct Outbox {
    lines: String,
    renewals: BTreeMap<u64, u64>,
    /// Counts changes.
    last: u64,
}

impl Sweeper {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changed: Arc::default(),
            progress: watch::Sender::new(Progress {
                status: Status::Down("it was not started".to_owned()),
                written: 0,
            }),
            census: Arc::default(),
        })
    }

    pub(super) fn census(&self) -> &Arc<Census> {
        &self.census
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, status: Status) {
        self.progress
            .send_modify(|progress| progress.status = status);
    }

    /// Has the sweeper ready, before there is anything to end.
    pub(crate) async fn begin(self: &Arc<Self>) -> io::Result<()> {
        {
            let mut state = self.state();
            if !std::mem::replace(&mut state.is_supervised, true) {
                self.set(Status::Starting);
                tokio::spawn(supervise(Supervised(Arc::downgrade(self))));
            }
        }
        self.reach(0).await
    }

    /// Nothing of this command outlives this process or the lease. Returns when
    /// that holds whatever becomes of this process.
    pub(super) async fn add(
        self: &Arc<Self>,
        run: &CommandRun,
        lease: Option<&Lease>,
    ) -> io::Result<()> {
        let change = {
            let mut state = self.state();
            let lease = lease.map(|lease| self.follow(&mut state, lease));
            let group = Group {
                mark: run.mark.clone(),
                started: run.started,
                lease,
            };
            let number = run.group.as_raw_nonzero().get();
            state.outbox.add(&group.line(number));
            state.groups.insert(number, group);
            state.outbox.last
        };
        self.reach(change).await
    }

    /// Nothing of this command outlives this process.
    pub(crate) async fn watch(self: &Arc<Self>, leader: &Leader) -> io::Result<()> {
        self.add(leader.run(), None).await
    }

    /// Nothing of the group is alive. Returns when the sweeper knows.
    pub(super) async fn remove(&self, group: Pid) {
        let change = {
            let mut state = self.state();
            let number = group.as_raw_nonzero().get();
            let Some(group) = state.groups.remove(&number) else {
                return;
            };
            state.outbox.add(&format!("-{number}\n"));
            if let Some(lease) = group.lease {
                state.unfollow(lease);
            }
            state.outbox.last
        };
        // Where there is no sweeper, none can kill whoever gets the number next.
        let _none = self.reach(change).await;
    }

    /// Waits until a sweeper knows so many changes, or there is none.
    async fn reach(&self, change: u64) -> io::Result<()> {
        self.changed.notify_one();
        let mut progress = self.progress.subscribe();
        let reached = progress.wait_for(|progress| match progress.status {
            Status::Starting => false,
            Status::Running => progress.written >= change,
            Status::Down(_) => true,
        });
        match &reached.await.map_err(io::Error::other)?.status {
            Status::Down(why) => {
                let why = format!("the sweeper (divvy sweep-children) is not running: {why}");
                Err(io::Error::other(why))
            }
            Status::Starting | Status::Running => Ok(()),
        }
    }

    /// The number of a lease, which is followed from now on.
    fn follow(self: &Arc<Self>, state: &mut State, lease: &Lease) -> u64 {
        let mut all = state.leases.iter_mut();
        if let Some((number, watched)) = all.find(|(_, watched)| watched.lease == *lease) {
            watched.groups += 1;
            return *number;
        }
        state.last_lease += 1;
        let (number, until) = (state.last_lease, lease.until());
        let following = follow(Arc::downgrade(self), lease.clone(), number, until);
        let watched = WatchedLease {
            lease: lease.clone(),
            until: nanos(until),
            groups: 1,
            task: tokio::spawn(following).abort_handle(),
        };
        state.outbox.add(&format!("={} {number}\n", watched.until));
        state.leases.insert(number, watched);
        number
    }

    fn renewed(&self, lease: u64, until: Option<Moment>) {
        let mut state = self.state();
        if let Some(watched) = state.leases.get_mut(&lease) {
            watched.until = nanos(until);
            state.outbox.renewals.insert(lease, nanos(until));
            self.changed.notify_one();
        }
    }

    /// Starts a sweeper that knows everything.
    async fn start(&self) -> io::Result<Process> {
        let mut process = Process::spawn(ourselves()?)?;
        match timeout(ANSWER_MAX, self.introduce(&mut process)).await {
            Ok(Ok(())) => Ok(process),
            failed => {
                // Before its pipe is closed: it would take that for the end of
                // this process, and kill every command.
                process.kill().await;
                match failed {
                    Ok(failed) => failed.map(|()| process),
                    Err(_late) => Err(io::Error::other(format!("no answer within {ANSWER_MAX:?}"))),
                }
            }
        }
    }

    /// No sweeper can be started. Returns whether that has to be tried again.
    fn failed(&self, why: &str) -> bool {
        let mut state = self.state();
        // Its successor learns everything.
        let _unsent = state.outbox.take();
        state.is_supervised = !state.groups.is_empty();
        self.set(Status::Down(why.to_owned()));
        state.is_supervised
    }

    /// Waits until the sweeper knows everything.
    async fn introduce(&self, process: &mut Process) -> io::Result<()> {
        process.expect(READY.trim_end()).await?;
        let (last, text) = {
            let mut state = self.state();
            let (last, _) = state.outbox.take();
            (last, state.everything())
        };
        process.exchange(last, &text).await?;
        self.progress.send_replace(Progress {
            status: Status::Running,
            written: last,
        });
        Ok(())
    }
}

/// Starts sweepers, one after another, as long as they are needed.
async fn supervise(supervised: Supervised) {
    let Supervised(weak) = &supervised;
    let mut pause = RESTART_FIRST;
    // Why there is none, unless that is reported.
    let mut lost: Option<String> = None;
    let mut is_missing = false;
    loop {
        let Some(sweeper) = weak.upgrade() else {
            return;
        };
        match sweeper.start().await {
            Ok(mut process) => {
                match lost.take() {
                    Some(why) => say!("warning: the sweeper {why}; another one was started"),
                    None if is_missing => say!("another sweeper was started"),
                    None => {}
                }
                is_missing = false;
                let changed = Arc::clone(&sweeper.changed);
                drop(sweeper);
                let begun = Instant::now();
                let Some(why) = serve(weak, &changed, &mut process).await else {
                    // Nobody needs it any more: it ends when its pipe closes.
                    return;
                };
                if let Some(sweeper) = weak.upgrade() {
                    sweeper.set(Status::Starting);
                }
                process.kill().await;
                lost = Some(why);
                if begun.elapsed() >= RESTART_LONGEST {
                    pause = RESTART_FIRST;
                }
            }
            Err(error) => {
                let error = plain(&error);
                if !sweeper.failed(&error) {
                    return;
                }
                if !std::mem::replace(&mut is_missing, true) {
                    let why = lost.take().unwrap_or_else(|| "is missing".to_owned());
                    say!("warning: the sweeper {why}; no other one can be started yet: {error}");
                }
            }
        }
        sleep_until(Instant::now() + pause).await;
        pause = (pause * 2).min(RESTART_LONGEST);
    }
}

/// Writes what changes to a sweeper until that ends or does not answer, and
/// returns what became of it; nothing when it is not needed any more.
///
/// Changes are written without waiting for earlier answers: a sweeper that stood
/// still finds every renewal in its pipe before it acts on the end of a lease.
async fn serve(weak: &Weak<Sweeper>, changed: &Notify, process: &mut Process) -> Option<String> {
    let late = || {
        Some(format!(
            "did not answer within {ANSWER_MAX:?} and was killed"
        ))
    };
    let killed = || Some("was killed".to_owned());
    // Changes it has not confirmed, and by when it has to.
    let mut unconfirmed: VecDeque<(u64, Instant)> = VecDeque::new();
    loop {
        let ping = Instant::now() + PING_INTERVAL;
        let due = unconfirmed.front().map(|(_, due)| *due);
        tokio::select! {
            // Its answers first: they may wait for as long as this did.
            biased;
            line = process.output.next_line() => {
                let answer = line.ok().flatten().and_then(|line| line.parse().ok());
                match unconfirmed.pop_front() {
                    Some((number, _)) if answer == Some(number) => {
                        let progress = &weak.upgrade()?.progress;
                        progress.send_modify(|progress| progress.written = number);
                        continue;
                    }
                    // It writes nothing unasked: this is its end.
                    _ => return killed(),
                }
            }
            () = changed.notified() => {}
            () = sleep_until(due.unwrap_or(ping)) => {
                if due.is_some() {
                    return late();
                }
            }
        }
        let (last, text) = weak.upgrade()?.state().outbox.take();
        unconfirmed.push_back((last, Instant::now() + ANSWER_MAX));
        // The pipe is full if it stands still for long.
        let due = due.unwrap_or_else(|| Instant::now() + ANSWER_MAX);
        match timeout_at(due, process.write(last, &text)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return killed(),
            Err(_late) => return late(),
        }
    }
}

/// The task that supervises sweepers. It also ends with its runtime: the next
/// [`Sweeper::begin`] starts another one.
struct Supervised(Weak<Sweeper>);

impl Drop for Supervised {
    fn drop(&mut self) {
        let Some(sweeper) = self.0.upgrade() else {
            return;
        };
        let mut state = sweeper.state();
        if std::mem::take(&mut state.is_supervised) {
            sweeper.set(Status::Down("its supervisor has ended".to_owned()));
        }
    }
}

/// A sweeper that runs.
#[derive(Debug)]
struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn spawn(ourselves: std::process::Command) -> io::Result<Self> {
        let mut child = Command::from(ourselves)
            .arg("sweep-children")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // No terminal's signals.
            .process_group(0)
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.expect("both are piped");
        Ok(Self {
            child,
            input,
            output: BufReader::new(output).lines(),
        })
    }

    async fn expect(&mut self, expected: &str) -> io::Result<()> {
        match self.output.next_line().await? {
            Some(line) if line == expected => Ok(()),
            Some(line) => Err(io::Error::other(format!("it answered {line:?}"))),
            None => Err(io::Error::other("it has ended")),
        }
    }

    /// Writes this, and waits until the sweeper has read it.
    async fn exchange(&mut self, number: u64, text: &str) -> io::Result<()> {
        self.write(number, text).await?;
        self.expect(&number.to_string()).await
    }

    /// Writes this, and asks for an answer with this number.
    async fn write(&mut self, number: u64, text: &str) -> io::Result<()> {
        let message = format!("{text}?{number}\n");
        self.input.write_all(message.as_bytes()).await
    }

    /// Ends it, also if it stands still, without its killing any command.
    async fn kill(&mut self) {
        // Fails only if it has ended.
        let _gone = self.child.start_kill();
        let _late = timeout(ANSWER_MAX, self.child.wait()).await;
    }
}

/// Has the sweeper know every renewal of a lease, and its end.
async fn follow(sweeper: Weak<Sweeper>, lease: Lease, number: u64, mut until: Option<Moment>) {
    loop {
        until = lease.changed(until).await;
        match sweeper.upgrade() {
            Some(sweeper) => sweeper.renewed(number, until),
            None => return,
        }
    }
}

impl State {
    fn unfollow(&mut self, number: u64) {
        let Some(watched) = self.leases.get_mut(&number) else {
            return;
        };
        watched.groups -= 1;
        if watched.groups == 0 {
            watched.task.abort();
            self.leases.remove(&number);
            self.outbox.renewals.remove(&number);
            self.outbox.add(&format!("~{number}\n"));
        }
    }

    /// All that a sweeper has to know.
    fn everything(&self) -> String {
        let leases = self.leases.iter();
        let leases = leases.map(|(number, watched)| format!("={} {number}\n", watched.until));
        let groups = self.groups.iter();
        leases
            .chain(groups.map(|(number, group)| group.line(*number)))
            .collect()
    }
}

impl Group {
    fn line(&self, number: i32) -> String {
        let lease = self
            .lease
            .map_or_else(String::new, |lease| format!(" {lease}"));
        format!("+{number} {} {}{lease}\n", self.mark, self.started)
    }
}

impl Outbox {
    fn add(&mut self, line: &str) {
        self.lines.push_str(line);
        self.last += 1;
    }

    /// What is to be written, and how many changes that is in all.
    fn take(&mut self) -> (u64, String) {
        let mut text = std::mem::take(&mut self.lines);
        let mut leases: BTreeMap<u64, String> = BTreeMap::new();
        for (lease, until) in std::mem::take(&mut self.renewals) {
            let line = leases.entry(until).or_insert_with(|| format!("={until}"));
            line.push_str(&format!(" {lease}"));
        }
        for line in leases.into_values() {
            text.push_str(&line);
            text.push('\n');
        }
        (self.last, text)
    }
}

fn nanos(until: Option<Moment>) -> u64 {
    until.map_or(0, |until| {
        u64::try_from(until.to_origin().as_nanos()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewals_of_leases_that_end_together_are_one_line() {
        let mut outbox = Outbox::default();
        for until in [100, 200] {
            for lease in 1..=4 {
                outbox.renewals.insert(lease, until);
            }
        }
        outbox.renewals.insert(3, 0);
        outbox.add("-7\n");
        assert_eq!(outbox.take(), (1, "-7\n=0 3\n=200 1 2 4\n".to_owned()));
        assert_eq!(outbox.take(), (1, String::new()));
    }

    #[tokio::test]
    async fn a_sweeper_that_cannot_be_started_fails_what_needs_it_and_keeps_nobody_waiting() {
        use std::os::unix::process::CommandExt as _;
        // This program, of tests, is none.
        let sweeper = Sweeper::new();
        for _ in 0..2 {
            let why = sweeper.begin().await.unwrap_err().to_string();
            let expected = "the sweeper (divvy sweep-children) is not running: it answered";
            assert!(why.starts_with(expected), "{why}");
        }
        assert!(!sweeper.state().is_supervised, "nothing runs that needs it");
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("1000").process_group(0).spawn().unwrap();
        let group = Pid::from_child(&child);
        let run = CommandRun::new(group, 0, "mark".into());
        sweeper.add(&run, None).await.unwrap_err();
        sweeper.begin().await.unwrap_err();
        assert!(sweeper.state().is_supervised, "it is tried again");
        // Those that failed were told of nothing, and have killed nothing.
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        sweeper.remove(group).await;
        let ended = async || !sweeper.state().is_supervised;
        divvy_testbed::until(RESTART_LONGEST * 4, "it is given up", ended).await;
    }
}
