//! The command of one partition: started, started again when it ends, and
//! stopped.

use std::os::unix::process::CommandExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use divvy::Partition;
use divvy::manager::{Grant, HookError};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::command_line::{CommandLine, Fill};
use super::output::Output;
use crate::args::ChildArgs;
use crate::failure::Failure;

/// How long to wait before a command that has ended is started again, at first
/// and after many times in a row.
const RESTART_FIRST: Duration = Duration::from_secs(1);
const RESTART_LONGEST: Duration = Duration::from_secs(30);
/// Whoever has run for so long did not end at once.
const RAN_WELL: Duration = Duration::from_secs(60);

/// What to run, for which partition, and how.
pub(super) struct Order {
    pub(super) worker: Box<str>,
    pub(super) command: Arc<CommandLine>,
    pub(super) grace: Duration,
    pub(super) output: Output,
    pub(super) partition: Partition,
    pub(super) grant: Grant,
}

/// The command of a partition, which runs until it is stopped.
#[derive(Debug)]
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    pub(super) fn start(order: Order) -> Result<Self, HookError> {
        let (stop, stopping) = watch::channel(false);
        let tended = Tended { order, stopping };
        let child = tended.spawn()?;
        let task = tokio::spawn(tended.run(child));
        Ok(Self { stop, task })
    }

    /// Stops it, and returns when it has ended.
    pub(crate) async fn stop(self) -> Result<(), HookError> {
        self.stop.send_replace(true);
        Ok(self.task.await?)
    }
}

/// A command that is looked after.
struct Tended {
    order: Order,
    stopping: watch::Receiver<bool>,
}

impl Tended {
    /// Starts the command, in a process group of its own, by way of this
    /// program: that sees to it that it does not outlive us.
    fn spawn(&self) -> Result<Child, HookError> {
        let name = self.order.partition.as_str();
        let (workload, unit) = name.rsplit_once(':').unwrap_or((name, ""));
        let fill = Fill {
            partition: name,
            workload,
            unit,
            token: self.order.grant.token(),
        };
        let (stdout, stderr) = self.order.output.stdio(name)?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("run-child")
            .arg("--parent")
            .arg(std::process::id().to_string())
            .arg("--")
            .args(self.order.command.filled(&fill))
            .env("DIVVY_PARTITION", name)
            .env("DIVVY_TOKEN", self.order.grant.token().to_string())
            .env("DIVVY_WORKER", &*self.order.worker)
            .stdin(std::process::Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        self.order.output.follow(name, &mut child);
        Ok(child)
    }

    async fn run(mut self, mut child: Child) {
        let mut failures = 0_u32;
        let mut begun = Instant::now();
        loop {
            let mut stopping = self.stopping.clone();
            tokio::select! {
                () = asked_to_stop(&mut stopping) => return self.stop(child).await,
                ended = child.wait() => {
                    if begun.elapsed() >= RAN_WELL {
                        failures = 0;
                    }
                    let pause = RESTART_FIRST.saturating_mul(1 << failures.min(5));
                    let pause = pause.min(RESTART_LONGEST);
                    failures += 1;
                    self.say(&format!("{}; starting it again in {pause:?}", told(ended)));
                    match self.again(pause).await {
                        Some(next) => child = next,
                        None => return,
                    }
                    begun = Instant::now();
                }
            }
        }
    }

    /// Starts the command again, as often as it takes; nothing if it has to
    /// stop before.
    async fn again(&mut self, mut pause: Duration) -> Option<Child> {
        loop {
            tokio::select! {
                () = asked_to_stop(&mut self.stopping) => return None,
                () = sleep(pause) => {}
            }
            match self.spawn() {
                Ok(child) => return Some(child),
                Err(error) => {
                    pause = (pause * 2).min(RESTART_LONGEST);
                    self.say(&format!("{error}; trying again in {pause:?}"));
                }
            }
        }
    }

    /// Asks the command to end, and ends it when its time or its grant is
    /// over.
    async fn stop(&self, mut child: Child) {
        let group = child.id().and_then(|id| Pid::from_raw(id as i32));
        signal(group, Signal::TERM);
        let ended = tokio::select! {
            ended = timeout(self.order.grace, child.wait()) => ended.is_ok(),
            // Another worker may begin: there is no more time to be polite.
            () = self.order.grant.ended() => false,
        };
        if !ended {
            self.say("it did not end in time, and is ended");
        }
        // Also what the command has left behind in its group.
        signal(group, Signal::KILL);
        let _ended = child.wait().await;
    }

    fn say(&self, words: &str) {
        eprintln!("divvy: the command of {}: {words}", self.order.partition);
    }
}

async fn asked_to_stop(stopping: &mut watch::Receiver<bool>) {
    // Also when nobody is left who could ask.
    let _gone = stopping.wait_for(|stop| *stop).await.is_err();
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // Who is gone already needs no signal.
        let _gone = kill_process_group(group, signal);
    }
}

fn told(ended: std::io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => format!("it ended ({status})"),
        Err(error) => format!("it cannot be waited for ({error})"),
    }
}

/// Becomes the command, after it is settled that it ends with its parent.
pub(crate) fn become_command(args: &ChildArgs) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot end with the parent")
        .map_err(Failure::Failed)?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
    if parent != Some(args.parent) {
        // It was gone before that could be settled.
        return Err(Failure::Failed(anyhow!("who started it has ended")));
    }
    let [command, arguments @ ..] = args.command.as_slice() else {
        return Err(Failure::Usage("a command is missing".to_owned()));
    };
    let error = std::process::Command::new(command).args(arguments).exec();
    let command = command.display();
    Err(Failure::Failed(anyhow!("cannot run {command}: {error}")))
}
