//! The signals that a member listens to.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::termios::{isatty, tcgetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    End,
    Reload,
}

pub(crate) struct Signals {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// The terminal that this was started in.
    terminal: Option<OwnedFd>,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let (stdin, stderr) = (io::stdin(), io::stderr());
        let mut streams = [stdin.as_fd(), stderr.as_fd()].into_iter();
        let terminal = streams.find(|stream| isatty(stream));
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            terminal: terminal
                .map(|found| found.try_clone_to_owned())
                .transpose()?,
        })
    }

    pub(crate) async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.term.recv() => Heard::End,
            _ = self.interrupt.recv() => Heard::End,
            _ = self.hangup.recv() => match self.is_left_alone() {
                true => Heard::End,
                false => Heard::Reload,
            },
        }
    }

    /// Waits for one that asks to end.
    pub(crate) async fn end(&mut self) {
        while self.next().await != Heard::End {}
    }

    /// Whether the terminal is gone: whoever closed it wants this to end, not
    /// to be read again.
    fn is_left_alone(&self) -> bool {
        self.terminal
            .as_ref()
            .is_some_and(|terminal| tcgetattr(terminal).is_err())
    }
}
