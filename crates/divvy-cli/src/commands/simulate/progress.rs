//! How far a run has come, on stderr, where that is a terminal.

use std::io::{self, IsTerminal as _};

use divvy_sim::Totals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Parts of the bar.
const PARTS: u64 = 1000;

pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn start() -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:30} {msg} ({eta} left)")
            .expect("the template is valid");
        Self(ProgressBar::with_draw_target(Some(PARTS), target).with_style(style))
    }

    pub(super) fn show(&self, totals: &Totals, done: f64) {
        self.0.set_position((done * PARTS as f64) as u64);
        self.0.set_message(format!(
            "{} seeds, {:.0} cluster-hours, {} violations",
            totals.seeds,
            totals.cluster_hours(),
            totals.violations
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
