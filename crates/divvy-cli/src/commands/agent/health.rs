//! Asking a command whether this worker is healthy.

use std::process::Stdio;
use std::time::Duration;

use divvy::controller::ControllerView;
use tokio::process::Command;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::command_line::CommandLine;

/// Asks so often, and says so.
pub(super) async fn watch(command: CommandLine, every: Duration, view: ControllerView) {
    let mut pace = interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = true;
    loop {
        pace.tick().await;
        let healthy = asked(&command, every).await;
        view.report_health(healthy);
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
