//! A command as the leader of a process group of its own.
//!
//! The number of a process may be given to another one as soon as it was waited
//! for. So the leader is waited for last, when nothing of its group is alive:
//! until then its number, which is the group's, is ours, and may be signalled.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until, timeout};

use super::census::{Found, MARK_VARIABLE, Sought, kill_escaped};
use super::sweeper::Sweeper;

/// After this it is reported that a killed command is still there, and then as
/// often.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// How often is looked whether all of a killed command has ended: at first, and
/// where it takes long.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LONGEST: Duration = Duration::from_millis(500);
/// Of many processes that are left, so many are named.
const NAMED_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Leader {
    child: Child,
    /// Readable when it has ended.
    process: AsyncFd<OwnedFd>,
    sought: Sought,
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
        let process = pidfd_open(group, PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(|process| AsyncFd::with_interest(process, Interest::READABLE));
        match process {
            Ok(process) => Ok(Self {
                child,
                process,
                sought: Sought {
                    group,
                    mark: mark.into(),
                },
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

    pub(super) fn sought(&self) -> &Sought {
        &self.sought
    }

    /// Signals all of its group.
    pub(crate) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match kill_process_group(self.sought.group, signal) {
            Err(Errno::SRCH) => Ok(()),
            sent => sent,
        }
    }

    /// Waits until it has ended; it is not waited for in the system's sense.
    pub(crate) async fn exited(&self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            // Fails only where the runtime ends, and with it everything.
            let Ok(mut ready) = self.process.readable().await else {
                return std::future::pending().await;
            };
            match waitid(WaitId::Pid(self.sought.group), options) {
                Ok(None) => ready.clear_ready(),
                Ok(Some(_)) | Err(_) => return,
            }
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
        let mut refused = self.signal(Signal::KILL).err();
        let mut reported = Instant::now();
        let mut pause = LOOK_FIRST;
        let _late = timeout(REPORT_INTERVAL, self.exited()).await;
        loop {
            let left = sweeper.census().alive(self.sought.clone()).await;
            match &left {
                Ok(found) if found.is_empty() => break,
                Ok(found) => refused = self.kill(found).err().or(refused),
                Err(_) => {}
            }
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                report(&what_is_left(left, refused));
            }
            sleep_until(Instant::now() + pause).await;
            pause = (pause * 2).min(LOOK_LONGEST);
        }
        // Its number is its own only until it is waited for.
        sweeper.remove(self.sought.group).await;
        self.is_waited_for = true;
        self.child.wait()
    }

    fn kill(&self, found: &[Found]) -> rustix::io::Result<()> {
        let mut outcome = self.signal(Signal::KILL);
        for process in found.iter().filter(|process| process.has_left) {
            let killed = kill_escaped(process.pid, &self.sought.mark);
            outcome = outcome.and(killed);
        }
        outcome
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_waited_for {
            // Also where nobody waits for its end any more.
            let _gone = self.signal(Signal::KILL);
        }
    }
}

/// What to do about a command that may not be signalled.
pub(super) fn unsignalled(error: Errno) -> String {
    match error {
        Errno::PERM => "it cannot be signalled, because it runs as another user (as with sudo or \
                        setuid): it keeps its partition until it ends by itself; run it as the \
                        user that runs divvy"
            .to_owned(),
        error => format!("it cannot be signalled: {error}"),
    }
}

fn what_is_left(left: Result<Vec<Found>, String>, refused: Option<Errno>) -> String {
    let found = match left {
        Ok(found) => found,
        Err(why) => return format!("cannot tell whether all of it has ended: /proc: {why}"),
    };
    let named = found.iter().take(NAMED_MAX);
    let mut names: Vec<String> = named
        .map(|process| format!("{} ({})", process.pid.as_raw_nonzero(), process.name))
        .collect();
    if found.len() > NAMED_MAX {
        names.push(format!("{} more", found.len() - NAMED_MAX));
    }
    let names = names.join(", ");
    match refused {
        Some(error) => format!("still there: {names}; {}", unsignalled(error)),
        None => format!("killed, and still there: {names}; its partition is kept until they end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: i32) -> Vec<Found> {
        let found = |number| Found {
            pid: Pid::from_raw(number).unwrap(),
            name: "sh".to_owned(),
            has_left: false,
        };
        (1..=count).map(found).collect()
    }

    #[test]
    fn processes_that_are_left_are_named_with_the_reason() {
        assert_eq!(
            what_is_left(Ok(found(2)), None),
            "killed, and still there: 1 (sh), 2 (sh); its partition is kept until they end"
        );
        let many = what_is_left(Ok(found(10)), None);
        assert!(many.contains("8 (sh), 2 more;"), "{many}");
        let refused = what_is_left(Ok(found(1)), Some(Errno::PERM));
        assert!(
            refused.contains("1 (sh); it cannot be signalled, because it runs as another user")
        );
        let blind = what_is_left(Err("Permission denied".to_owned()), None);
        assert!(blind.ends_with("/proc: Permission denied"), "{blind}");
    }

    #[tokio::test]
    async fn nothing_of_a_group_is_alive_when_its_end_is_told() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & setsid sleep 1000 & exit 3"]);
        let leader = Leader::spawn(command).unwrap();
        leader.exited().await;
        // Its number is still its own.
        leader.exited().await;
        let (sought, sweeper) = (leader.sought().clone(), Sweeper::new());
        let alive = sweeper.census().alive(sought.clone()).await.unwrap();
        assert_eq!(alive.len(), 2, "{alive:?}");
        let status = leader.end(&sweeper, |words| panic!("{words}")).await;
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(sweeper.census().alive(sought).await.unwrap(), []);
    }
}
