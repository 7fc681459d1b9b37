//! One running process of a server.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process, prlimit, waitid,
};

use crate::program::debian;
use crate::spawner;

const SIGNAL_TAKES_MAX: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(1);

/// A process that ends when this is dropped, and when the process that holds this ends.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts `program`, its output going to the end of the file `log`.
    pub(crate) fn spawn(program: &Path, arguments: &[String], log: &Path) -> io::Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = mortal(program, arguments);
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child = spawner::spawn(command)?;
        Ok(Self { child })
    }

    /// Starts `program` for somebody who talks to it: only its errors go to the file `log`.
    pub(crate) fn spawn_piped(
        program: &Path,
        arguments: &[String],
        log: &Path,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let errors = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = mortal(program, arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = spawner::spawn(command)?;
        let input = child.stdin.take().expect("it is piped");
        let output = child.stdout.take().expect("it is piped");
        Ok((Self { child }, input, output))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    /// Waits until it has ended, but not for longer than this.
    pub(crate) fn ends_within(&mut self, bound: Duration) -> bool {
        let deadline = Instant::now() + bound;
        while self.ended().is_none() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(INTERVAL);
        }
        true
    }

    /// Stops all of its threads; returns when they have.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let stopped = || {
            let asked = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            waitid(WaitId::Pid(self.id()), asked).is_ok_and(|status| status.is_some())
        };
        let deadline = Instant::now() + SIGNAL_TAKES_MAX;
        while !stopped() {
            assert!(
                Instant::now() < deadline,
                "process {} does not pause",
                self.pid()
            );
            thread::sleep(INTERVAL);
        }
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Lets no write make a file larger than this, or any, without a number.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(Some(self.id()), Resource::Fsize, limit).expect("a child can be limited");
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.resume();
    }

    fn signal(&self, signal: Signal) {
        // It stays ours until it is waited for, so the id can't be another's.
        kill_process(self.id(), signal).expect("a child can be signalled");
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

/// The command that runs a program which does not outlive its parent.
fn mortal(program: &Path, arguments: &[String]) -> Command {
    // One sets the signal of the parent's death, the other leaves a write beyond the largest
    // file to fail instead of ending its process; then they become the program.
    let mut command = Command::new(debian("setpriv"));
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(debian("env"))
        .arg("--ignore-signal=XFSZ")
        .arg(program)
        .args(arguments);
    command
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only if it has ended already. A paused process is killed, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
