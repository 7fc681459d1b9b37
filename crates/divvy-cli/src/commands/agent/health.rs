//! Whether this worker is fit to have partitions: what a command says of it,
//! and what people say.

use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use divvy::controller::ControllerView;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::exec::{CommandLine, Sweeper};
use crate::voice::say;

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

    /// Nothing is taken before a command has said that it may be.
    pub(super) fn wait_for_answer(&self) {
        self.say(|said| said.is_healthy = false);
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
        self.view.report_health(said.is_healthy);
        self.view.report_drained(said.is_drained);
    }
}

/// Asks so often, and says so.
pub(super) async fn watch(command: CommandLine, every: Duration, fitness: Arc<Fitness>) {
    let mut pace = interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = true;
    let sweeper = Arc::new(Sweeper::default());
    loop {
        pace.tick().await;
        let beginning = Arc::clone(&sweeper);
        // Without it the command is asked all the same, and ended by hand.
        let _begun = tokio::task::spawn_blocking(move || beginning.begin()).await;
        let healthy = asked(&command, every, &sweeper).await;
        fitness.say(|said| said.is_healthy = healthy);
        if healthy != before {
            let words = if healthy {
                "healthy again"
            } else {
                "unhealthy"
            };
            say!("{words}, by --health-cmd");
            before = healthy;
        }
    }
}

/// Runs the command once. Nothing that it starts outlasts its time.
async fn asked(command: &CommandLine, limit: Duration, sweeper: &Arc<Sweeper>) -> bool {
    let [program, arguments @ ..] = command.words() else {
        return false;
    };
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            say!("--health-cmd cannot be run: {error}");
            return false;
        }
    };
    let group = child.id().and_then(|id| Pid::from_raw(id as i32));
    let group = group.filter(|group| sweeper.add(*group).is_ok());
    let ended = timeout(limit, child.wait()).await;
    if let Some(group) = group {
        // Who is gone already needs no signal.
        let _gone = kill_process_group(group, Signal::KILL);
        let _ended = child.wait().await;
        sweeper.remove(group);
    }
    matches!(ended, Ok(Ok(status)) if status.success())
}
