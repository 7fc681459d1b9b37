//! Commands as processes: run to their end, or ended as by Ctrl-C.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// What a process says, line by line.
enum Said {
    Out(String),
    Error(String),
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    said: Receiver<Said>,
    pub(crate) out: Vec<String>,
    pub(crate) errors: Vec<String>,
}

/// Why one is not waited for any longer.
pub(crate) enum Waited {
    Ended(ExitStatus),
    Said,
    TooLong,
}

impl Running {
    /// Starts a line of shell in a process group of its own.
    pub(crate) fn start(line: &str, at: &Path, environment: &[(String, String)]) -> Self {
        // Ctrl-C ends it, also where whoever started us ignores that, as shells have
        // what they start in the background do.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT,QUIT", "bash", "-c", line])
            .current_dir(at)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn().expect("env is there");
        let (teller, said) = channel();
        let out = child.stdout.take().expect("it is piped");
        let errors = child.stderr.take().expect("it is piped");
        tell(out, teller.clone(), Said::Out);
        tell(errors, teller, Said::Error);
        Self {
            child,
            said,
            out: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Waits until it says something, if that is given, or else until it ends.
    pub(crate) fn wait(&mut self, says: Option<&str>, most: Duration) -> Waited {
        let until = Instant::now() + most;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = match self.said.recv_timeout(left) {
                Ok(Said::Out(line)) => {
                    self.out.push(line);
                    self.out.last()
                }
                Ok(Said::Error(line)) => {
                    self.errors.push(line);
                    self.errors.last()
                }
                Err(RecvTimeoutError::Timeout) => return Waited::TooLong,
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().expect("it is a child of this process");
                    return Waited::Ended(status);
                }
            };
            if let (Some(says), Some(line)) = (says, line)
                && line.contains(says)
            {
                return Waited::Said;
            }
        }
    }

    /// Ends it as Ctrl-C would, and gives how it ended.
    pub(crate) fn interrupt(&mut self, most: Duration) -> Waited {
        self.signal(Signal::INT);
        self.wait(None, most)
    }

    fn signal(&self, signal: Signal) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // One that has ended cannot be signalled, which is well.
            let _ended = kill_process_group(group, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _known = self.child.wait();
    }
}

fn tell(from: impl Read + Send + 'static, to: Sender<Said>, as_what: fn(String) -> Said) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { break };
            if to.send(as_what(line)).is_err() {
                break;
            }
        }
    });
}
