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
    /// One came while only an end was waited for.
    is_reload_due: bool,
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
            is_reload_due: false,
        })
    }

    pub(crate) async fn next(&mut self) -> Heard {
        match std::mem::take(&mut self.is_reload_due) {
            true => Heard::Reload,
            false => self.heard().await,
        }
    }

    async fn heard(&mut self) -> Heard {
        tokio::select! {
            _ = self.term.recv() => Heard::End,
            _ = self.interrupt.recv() => Heard::End,
            _ = self.hangup.recv() => match self.is_left_alone() {
                true => Heard::End,
                false => Heard::Reload,
            },
        }
    }

    /// Waits for one that asks to end; what else is asked for waits until then.
    pub(crate) async fn end(&mut self) {
        while self.heard().await != Heard::End {
            self.is_reload_due = true;
        }
    }

    /// Whether the terminal is gone: whoever closed it wants this to end, not
    /// to be read again.
    fn is_left_alone(&self) -> bool {
        self.terminal
            .as_ref()
            .is_some_and(|terminal| tcgetattr(terminal).is_err())
    }
}
