//! Whether this worker is fit to have partitions: what a command says of it,
//! and what people say.

use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use divvy::controller::ControllerView;
use tokio::process::Command;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::exec::CommandLine;

/// Who says what of a worker's fitness.
#[derive(Debug)]
pub(super) struct Fitness {
    view: ControllerView,
    said: Mutex<Said>,
}

#[derive(Debug, Clone, Copy)]
struct Said {
    /// By `--health-cmd`.
    is_healthy: bool,
    /// By whoever asked for it.
    is_drained: bool,
}

impl Fitness {
    pub(super) fn new(view: ControllerView) -> Arc<Self> {
        let said = Said {
            is_healthy: true,
            is_drained: false,
        };
        Arc::new(Self {
            view,
            said: Mutex::new(said),
        })
    }

    pub(super) fn drain(&self, wanted: bool) {
        self.say(|said| said.is_drained = wanted);
    }

    pub(super) fn is_drained(&self) -> bool {
        self.said().is_drained
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.said().is_healthy
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, change: impl FnOnce(&mut Said)) {
        let mut said = self.said();
        change(&mut said);
        // Still locked, so that the last word is the one that counts.
        self.view.report_health(said.is_healthy && !said.is_drained);
    }
}

/// Asks so often, and says so.
pub(super) async fn watch(command: CommandLine, every: Duration, fitness: Arc<Fitness>) {
    let mut pace = interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = true;
    loop {
        pace.tick().await;
        let healthy = asked(&command, every).await;
        fitness.say(|said| said.is_healthy = healthy);
        if healthy != before {
            let words = if healthy {
                "healthy again"
            } else {
                "unhealthy"
            };
            eprintln!("divvy: {words}, by --health-cmd");
            before = healthy;
        }
    }
}

async fn asked(command: &CommandLine, limit: Duration) -> bool {
    let [program, arguments @ ..] = command.words() else {
        return false;
    };
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    match spawned {
        Ok(mut child) => {
            matches!(timeout(limit, child.wait()).await, Ok(Ok(status)) if status.success())
        }
        Err(error) => {
            eprintln!("divvy: --health-cmd cannot be run: {error}");
            false
        }
    }
}
