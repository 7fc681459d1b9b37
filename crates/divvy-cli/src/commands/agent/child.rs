//! The command of one partition: started, started again when it ends, and
//! stopped.

use std::os::unix::process::CommandExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use divvy::Partition;
use divvy::controller::{Consumer, ConsumerFactory};
use divvy::lease::StopReason;
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

/// Runs commands.
#[derive(Debug)]
pub(super) struct Children {
    pub(super) worker: Arc<str>,
    pub(super) command: Arc<CommandLine>,
    pub(super) grace: Duration,
    pub(super) output: Output,
}

#[async_trait]
impl ConsumerFactory for Children {
    async fn start(
        &self,
        partition: &Partition,
        grant: Grant,
    ) -> Result<Box<dyn Consumer>, HookError> {
        let (stop, stopping) = watch::channel(false);
        let running = Running {
            worker: Arc::clone(&self.worker),
            command: Arc::clone(&self.command),
            grace: self.grace,
            output: self.output.clone(),
            partition: partition.clone(),
            grant,
            stopping,
        };
        // What cannot even be started is no owner's.
        let child = running.spawn()?;
        let task = tokio::spawn(running.run(child));
        Ok(Box::new(Stopping { stop, task }))
    }
}

struct Stopping {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

#[async_trait]
impl Consumer for Stopping {
    async fn stop(self: Box<Self>, _: StopReason) -> Result<(), HookError> {
        self.stop.send_replace(true);
        Ok(self.task.await?)
    }
}

struct Running {
    worker: Arc<str>,
    command: Arc<CommandLine>,
    grace: Duration,
    output: Output,
    partition: Partition,
    grant: Grant,
    stopping: watch::Receiver<bool>,
}

impl Running {
    /// Starts the command, in a process group of its own, by way of this
    /// program: that sees to it that it does not outlive us.
    fn spawn(&self) -> Result<Child, HookError> {
        let name = self.partition.as_str();
        let (workload, unit) = name.rsplit_once(':').unwrap_or((name, ""));
        let fill = Fill {
            workload,
            unit,
            token: self.grant.token(),
        };
        let (stdout, stderr) = self.output.stdio(name)?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("run-child")
            .arg("--parent")
            .arg(std::process::id().to_string())
            .arg("--")
            .args(self.command.filled(&fill))
            .env("DIVVY_PARTITION", name)
            .env("DIVVY_TOKEN", self.grant.token().to_string())
            .env("DIVVY_WORKER", &*self.worker)
            .stdin(std::process::Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        self.output.follow(name, &mut child);
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
            ended = timeout(self.grace, child.wait()) => ended.is_ok(),
            // Another worker may begin: there is no more time to be polite.
            () = self.grant.ended() => false,
        };
        if !ended {
            self.say("it did not end in time, and is ended");
        }
        // Also what the command has left behind in its group.
        signal(group, Signal::KILL);
        let _ended = child.wait().await;
    }

    fn say(&self, words: &str) {
        eprintln!("divvy: the command of {}: {words}", self.partition);
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
pub(crate) fn exec(args: &ChildArgs) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot end with the parent")
        .map_err(Failure::Failed)?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
    if parent != Some(args.parent) {
        // It was gone before that could be settled.
        return Err(Failure::Failed(anyhow!("the agent has ended")));
    }
    let [command, arguments @ ..] = args.command.as_slice() else {
        return Err(Failure::Usage("a command is missing".to_owned()));
    };
    let error = std::process::Command::new(command).args(arguments).exec();
    let command = command.display();
    Err(Failure::Failed(anyhow!("cannot run {command}: {error}")))
}
