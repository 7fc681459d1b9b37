//! A command as the leader of a process group of its own.
//!
//! The number of a process may be given to another one as soon as it was waited
//! for. So the leader is waited for last, when nothing of its group is alive:
//! until then its number, which is the group's, is ours, and may be signalled.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    test_kill_process, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until, timeout};

use super::census::{CommandRun, LiveProcess, MARK_VARIABLE, start_of};
use super::open_files::restore_limit;
use super::sweeper::Sweeper;

/// After this it is reported that a killed command is still there, and then as
/// often.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// How often is looked whether all of a command has ended: at first, and where
/// it takes long.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LONGEST: Duration = Duration::from_millis(500);
/// Of many processes that are left, so many are named.
const NAMED_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Leader {
    child: Child,
    /// Readable when it has ended.
    process: AsyncFd<OwnedFd>,
    run: CommandRun,
    is_waited_for: bool,
}

impl Leader {
    /// Starts a command in a process group of its own, with a mark of its own.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types whose descriptor changes; this one's does not"
    )]
    pub(crate) fn spawn(mut command: Command) -> io::Result<Self> {
        let mark = format!("{:032x}", fastrand::u128(..));
        let mut child = command.env(MARK_VARIABLE, &mark).process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        restore_limit(group);
        let follow = || {
            let started = start_of(group)?.ok_or(io::ErrorKind::NotFound)?;
            let process = pidfd_open(group, PidfdFlags::empty())?;
            let process = AsyncFd::with_interest(process, Interest::READABLE)?;
            io::Result::Ok((started, process))
        };
        match follow() {
            Ok((started, process)) => Ok(Self {
                child,
                process,
                run: CommandRun::new(group, started, mark.into()),
                is_waited_for: false,
            }),
            Err(error) => {
                // It cannot be followed, so it must not run.
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(super) fn run(&self) -> &CommandRun {
        &self.run
    }

    /// Waits until it has ended; it is not waited for in the system's sense.
    pub(crate) async fn exited(&self) {
        loop {
            // Fails only where the runtime ends, and with it everything.
            let Ok(mut ready) = self.process.readable().await else {
                return std::future::pending().await;
            };
            if self.has_exited() {
                return;
            }
            ready.clear_ready();
        }
    }

    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.run.group), options), Ok(None))
    }

    /// Asks everything of the command to end (SIGTERM), and returns when nothing
    /// of it is alive. `report` gets the processes that cannot be asked.
    pub(super) async fn terminate(&mut self, sweeper: &Sweeper, report: impl Fn(&str)) {
        // Before the first of them ends: then their children lose their parents.
        // Where the look takes long, the group must not lose its time to end.
        let refused = match timeout(LOOK_LONGEST, self.left(sweeper)).await {
            Ok(left) => self.signal(&left.unwrap_or_default(), Signal::TERM),
            Err(_late) => {
                self.signal_group(Signal::TERM);
                let left = self.left(sweeper).await.unwrap_or_default();
                self.signal_each(&left, Signal::TERM)
            }
        };
        if !refused.is_empty() {
            report(&cannot_be_signalled(&refused));
        }
        self.exited().await;
        let mut pause = LOOK_FIRST;
        // What cannot be seen is not waited for here, but when it was killed.
        while self.left(sweeper).await.is_ok_and(|left| !left.is_empty()) {
            sleep_until(Instant::now() + pause).await;
            pause = (pause * 2).min(LOOK_LONGEST);
        }
    }

    /// Kills it, and everything that it has started, and returns when nothing of
    /// it is alive, however long that takes. `report` gets what takes long, and
    /// why.
    pub(crate) async fn end(
        mut self,
        sweeper: &Sweeper,
        report: impl Fn(&str),
    ) -> io::Result<ExitStatus> {
        // The group does nothing more while processes that left it are looked
        // for: those without a mark are known by their parents alone.
        self.signal_group(Signal::STOP);
        let _late = timeout(LOOK_LONGEST, self.stop_escaped(sweeper)).await;
        self.signal_group(Signal::KILL);
        let mut reported = Instant::now();
        let mut pause = LOOK_FIRST;
        let _late = timeout(REPORT_INTERVAL, self.exited()).await;
        loop {
            let left = self.left(sweeper).await;
            let refused = match &left {
                Ok(left) if left.is_empty() => break,
                Ok(left) => self.signal(left, Signal::KILL),
                Err(_) => Vec::new(),
            };
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                report(&still_there(left, &refused));
            }
            sleep_until(Instant::now() + pause).await;
            pause = (pause * 2).min(LOOK_LONGEST);
        }
        // Its number is its own only until it is waited for.
        sweeper.remove(self.run.group).await;
        self.is_waited_for = true;
        self.child.wait()
    }

    /// Stops (SIGSTOP) the processes that have left the group, until a look
    /// finds no others: their children are known by them.
    async fn stop_escaped(&mut self, sweeper: &Sweeper) {
        let mut stopped = HashSet::new();
        while let Ok(left) = self.left(sweeper).await {
            let escaped = left.into_iter().filter(|process| process.has_left);
            let new: Vec<LiveProcess> = escaped
                .filter(|process| stopped.insert((process.pid, process.started)))
                .collect();
            if new.is_empty() {
                return;
            }
            self.signal_each(&new, Signal::STOP);
        }
    }

    /// What is alive of the command.
    async fn left(&mut self, sweeper: &Sweeper) -> Result<Vec<LiveProcess>, String> {
        let mut left = sweeper.census().alive(self.run.clone()).await?;
        let group = self.run.group;
        if !self.has_exited() && !left.iter().any(|process| process.pid == group) {
            // Where `/proc` does not show processes of other users.
            left.push(LiveProcess {
                pid: group,
                name: "the command".to_owned(),
                started: 0,
                has_left: false,
            });
        }
        self.run.remember(&left);
        Ok(left)
    }

    /// Signals these processes and all of the group, which may have new ones.
    /// Returns those that it is not allowed to signal.
    fn signal(&self, processes: &[LiveProcess], signal: Signal) -> Vec<LiveProcess> {
        self.signal_group(signal);
        self.signal_each(processes, signal)
    }

    /// Signals those of these processes that have left the group, which has got
    /// the signal already. Returns those that it is not allowed to signal.
    fn signal_each(&self, processes: &[LiveProcess], signal: Signal) -> Vec<LiveProcess> {
        let refused = processes.iter().filter(|process| {
            let outcome = if process.has_left {
                process.signal(signal)
            } else {
                // It has got the signal if it may be signalled, and a second
                // SIGTERM means haste to many programs.
                test_kill_process(process.pid)
            };
            outcome == Err(Errno::PERM)
        });
        refused.cloned().collect()
    }

    fn signal_group(&self, signal: Signal) {
        // That nothing is left, or nothing may be signalled, shows later.
        let _refused = kill_process_group(self.run.group, signal);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_waited_for {
            // Also where nobody waits for its end any more.
            self.signal_group(Signal::KILL);
        }
    }
}

/// Why processes go on, and what to do about that.
fn cannot_be_signalled(processes: &[LiveProcess]) -> String {
    format!(
        "it cannot be signalled, because it runs as another user: {} changed the real user id, as \
         with sudo or su; its partition is kept until the process ends, its lease is lost, or \
         shutdown_timeout ends divvy, and then another owner may run its command beside it; run \
         commands as the user that runs divvy",
        names(processes)
    )
}

fn still_there(left: Result<Vec<LiveProcess>, String>, refused: &[LiveProcess]) -> String {
    let mut left = match left {
        Ok(left) => left,
        Err(why) => return format!("cannot tell whether all of it has ended: /proc: {why}"),
    };
    left.retain(|process| !refused.contains(process));
    let mut parts = Vec::new();
    if !left.is_empty() {
        parts.push(format!(
            "killed, and still there: {}; its partition is kept until they end",
            names(&left)
        ));
    }
    if !refused.is_empty() {
        let why = cannot_be_signalled(refused);
        parts.push(format!("still there: {}; {why}", names(refused)));
    }
    parts.join("; ")
}

/// Processes by pid and name.
fn names(processes: &[LiveProcess]) -> String {
    let named = processes.iter().take(NAMED_MAX);
    let mut names: Vec<String> = named
        .map(|process| format!("{} ({})", process.pid.as_raw_nonzero(), process.name))
        .collect();
    if processes.len() > NAMED_MAX {
        names.push(format!("{} more", processes.len() - NAMED_MAX));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes(count: i32) -> Vec<LiveProcess> {
        let process = |number| LiveProcess {
            pid: Pid::from_raw(number).unwrap(),
            name: "sh".to_owned(),
            started: 0,
            has_left: false,
        };
        (1..=count).map(process).collect()
    }

    #[test]
    fn processes_that_are_left_are_named_with_the_reason() {
        let kept = "its partition is kept until they end";
        assert_eq!(
            still_there(Ok(processes(2)), &[]),
            format!("killed, and still there: 1 (sh), 2 (sh); {kept}")
        );
        let many = still_there(Ok(processes(10)), &[]);
        assert!(many.contains("8 (sh), 2 more;"), "{many}");
        let another =
            "still there: 1 (sh); it cannot be signalled, because it runs as another user";
        let refused = still_there(Ok(processes(1)), &processes(1));
        assert!(refused.starts_with(another), "{refused}");
        let mixed = still_there(Ok(processes(2)), &processes(1));
        let expected = format!("killed, and still there: 2 (sh); {kept}; {another}");
        assert!(mixed.starts_with(&expected), "{mixed}");
        let blind = still_there(Err("Permission denied".to_owned()), &[]);
        assert!(blind.ends_with("/proc: Permission denied"), "{blind}");
    }

    #[tokio::test]
    async fn nothing_of_a_command_is_alive_when_its_end_is_reported() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & setsid sleep 1000 & exit 3"]);
        let leader = Leader::spawn(command).unwrap();
        leader.exited().await;
        // Its number is still its own.
        leader.exited().await;
        let (run, sweeper) = (leader.run().clone(), Sweeper::new());
        let alive = sweeper.census().alive(run.clone()).await.unwrap();
        assert_eq!(alive.len(), 2, "{alive:?}");
        let status = leader.end(&sweeper, |_late| ()).await;
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(sweeper.census().alive(run).await.unwrap(), []);
    }

    #[tokio::test]
    async fn all_of_a_command_has_time_to_end_when_its_shell_has_none() {
        let directory = tempfile::TempDir::new().unwrap();
        let (ready, done) = (
            directory.path().join("ready"),
            directory.path().join("done"),
        );
        // The shell dies of SIGTERM at once; its children need a moment.
        let child = "trap \"sleep 0.3; echo done >> $DONE; exit\" TERM; echo ready >> $READY; \
                     while :; do sleep 0.05; done";
        let script = format!("sh -c '{child}' & setsid sh -c '{child}' & wait");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        command.env("READY", &ready).env("DONE", &done);
        let mut leader = Leader::spawn(command).unwrap();
        let sweeper = Sweeper::new();
        divvy_testbed::until(Duration::from_secs(60), "both are ready", async || {
            std::fs::read_to_string(&ready).is_ok_and(|text| text.lines().count() == 2)
        })
        .await;
        leader.terminate(&sweeper, |words| panic!("{words}")).await;
        assert_eq!(std::fs::read_to_string(&done).unwrap(), "done\ndone\n");
        leader.end(&sweeper, |_late| ()).await.unwrap();
    }
}
