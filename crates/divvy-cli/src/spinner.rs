//! A sign of life on stderr while something takes its time.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is done sooner shows no spinner.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// Spins on stderr until dropped, where stderr is a terminal.
pub(crate) struct Spinner {
    bar: ProgressBar,
    /// Its end tells the thread to stop.
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Spinner {
    /// Starts to say what is being done.
    pub(crate) fn start(doing: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
            .with_style(ProgressStyle::default_spinner());
        bar.set_message(doing);
        let running = io::stderr().is_terminal().then(|| {
            let (stop, stopped) = mpsc::channel();
            let shown = bar.clone();
            let thread = thread::spawn(move || {
                if stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(TICK);
                    let _ = stopped.recv();
                }
                shown.finish_and_clear();
            });
            (stop, thread)
        });
        Self { bar, running }
    }

    /// Says what is being done next.
    pub(crate) fn turn_to(&self, doing: &'static str) {
        self.bar.set_message(doing);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            // A spinner that failed has cleared nothing; the result matters more.
            let _ = thread.join();
        }
    }
}
