//! The command of one partition: started, started again when it ends, and
//! stopped.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use divvy::Partition;
use divvy::manager::{Grant, HookError};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::command_line::{CommandLine, Fill};
use super::killed::Killed;
use super::ourselves::ourselves;
use super::output::Output;
use super::sweeper::Sweeper;
use super::tally;
use crate::args::{ChildArgs, STORE_VARIABLE, WEBHOOK_VARIABLE};
use crate::failure::Failure;
use crate::voice::say;

/// How long to wait before a command that has ended is started again, at first
/// and after many times in a row.
const RESTART_FIRST: Duration = Duration::from_secs(1);
const RESTART_LONGEST: Duration = Duration::from_secs(30);
/// Whoever has run for so long did not end at once.
const RAN_WELL: Duration = Duration::from_secs(60);
/// How long what a command has left behind may take to be gone, once it is
/// killed.
const SWEPT_WITHIN: Duration = Duration::from_secs(2);
const SWEPT_POLL: Duration = Duration::from_millis(5);
/// Longest word on why a command cannot be run.
const REFUSAL_BYTES_MAX: u64 = 4096;

/// What to run, for which partition, and how.
pub(super) struct Order {
    pub(super) worker: Box<str>,
    pub(super) command: Arc<CommandLine>,
    pub(super) grace: Duration,
    pub(super) output: Output,
    pub(super) sweeper: Arc<Sweeper>,
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
    pub(super) async fn start(order: Order) -> Result<Self, HookError> {
        let (stop, stopping) = watch::channel(false);
        let tended = Tended { order, stopping };
        let child = tended.spawn().await?;
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
    /// program: that sees to it that it does not outlive us, and says if it
    /// cannot be run.
    async fn spawn(&self) -> Result<Child, HookError> {
        let sweeper = Arc::clone(&self.order.sweeper);
        tokio::task::spawn_blocking(move || sweeper.begin()).await??;
        let (said, saying) = std::io::pipe()?;
        let mut child = self.command(saying.into())?.spawn()?;
        if let Some(group) = group(&child) {
            self.order.sweeper.add(group)?;
        }
        self.order
            .output
            .follow(self.order.partition.as_str(), &mut child);
        let mut refusal = String::new();
        let said = pipe::Receiver::from_owned_fd(said.into())?;
        // It ends when the command is there.
        said.take(REFUSAL_BYTES_MAX)
            .read_to_string(&mut refusal)
            .await?;
        match refusal.is_empty() {
            true => {
                tally::started();
                Ok(child)
            }
            false => {
                tally::refused();
                self.sweep(&mut child).await;
                Err(refusal.into())
            }
        }
    }

    fn command(&self, saying: Stdio) -> Result<Command, HookError> {
        let name = self.order.partition.as_str();
        let (workload, unit) = name.rsplit_once(':').unwrap_or((name, ""));
        let fill = Fill {
            partition: name,
            workload,
            unit,
            token: self.order.grant.token(),
        };
        let (stdout, stderr) = self.order.output.stdio(name)?;
        let mut command = Command::from(ourselves()?);
        command
            .arg("run-child")
            .arg("--parent")
            .arg(std::process::id().to_string())
            .arg("--")
            .args(self.order.command.filled(&fill))
            // They are for us, and may hold secrets.
            .env_remove(STORE_VARIABLE)
            .env_remove(WEBHOOK_VARIABLE)
            .env("DIVVY_PARTITION", name)
            .env("DIVVY_TOKEN", self.order.grant.token().to_string())
            .env("DIVVY_WORKER", &*self.order.worker)
            .stdin(saying)
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true);
        Ok(command)
    }

    async fn run(mut self, mut child: Child) {
        let mut failures = 0_u32;
        let mut begun = Instant::now();
        loop {
            let mut stopping = self.stopping.clone();
            let group = group(&child);
            tokio::select! {
                () = asked_to_stop(&mut stopping) => return self.stop(child).await,
                ended = child.wait() => {
                    tally::ended();
                    self.sweep_group(group).await;
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
            match self.spawn().await {
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
        let (begun, grace) = (Instant::now(), self.order.grace);
        let was_over = !self.order.grant.is_current();
        signal(group(&child), Signal::TERM);
        let killed = tokio::select! {
            ended = timeout(grace, child.wait()) => ended.err().map(|_late| Killed::Late),
            // Another worker may begin: there is no more time to be polite.
            () = self.order.grant.ended() => Some(match was_over {
                true => Killed::AtOnce,
                false => Killed::Early(begun.elapsed()),
            }),
        };
        self.sweep(&mut child).await;
        if let Some(killed) = killed {
            tally::killed();
            self.say(&killed.told(grace));
        }
    }

    /// Ends a command, and what it has left behind in its group.
    async fn sweep(&self, child: &mut Child) {
        let group = group(child);
        signal(group, Signal::KILL);
        let _ended = child.wait().await;
        self.sweep_group(group).await;
    }

    /// The same for a command that has ended.
    async fn sweep_group(&self, group: Option<Pid>) {
        let Some(group) = group else { return };
        signal(Some(group), Signal::KILL);
        let gone = async {
            while test_kill_process_group(group).is_ok() {
                sleep(SWEPT_POLL).await;
            }
        };
        if timeout(SWEPT_WITHIN, gone).await.is_err() {
            self.say("what it left behind takes long to end");
        }
        self.order.sweeper.remove(group);
    }

    fn say(&self, words: &str) {
        say!("the command of {}: {words}", self.order.partition);
    }
}

async fn asked_to_stop(stopping: &mut watch::Receiver<bool>) {
    // Also when nobody is left who could ask.
    let _gone = stopping.wait_for(|stop| *stop).await.is_err();
}

/// The process group of a command that was not waited for yet.
fn group(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| Pid::from_raw(id as i32))
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

/// Becomes the command, after it is settled that it ends with its parent. What
/// prevents that is said to whoever reads where we would; it hears nothing when
/// the command is there.
pub(crate) fn become_command(args: &ChildArgs) -> Result<(), Failure> {
    let saying = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)
        .context("nobody to tell")
        .map_err(Failure::Failed)?;
    let refusal = refusal(args);
    let mut saying = std::fs::File::from(saying);
    // Where nobody listens, the exit code tells.
    let _unheard = saying.write_all(refusal.to_string().as_bytes());
    Err(refusal)
}

/// Sees to it that this process ends with the one that started it.
pub(crate) fn end_with_parent() -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot end with the parent")
        .map_err(Failure::Failed)
}

/// The same where that one is known, and may have ended already.
pub(crate) fn end_with(parent: u32) -> Result<(), Failure> {
    end_with_parent()?;
    let found = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
    match found == Some(parent) {
        true => Ok(()),
        // It was gone before that could be settled.
        false => Err(Failure::Failed(anyhow!("who started it has ended"))),
    }
}

/// Why this did not become the command.
fn refusal(args: &ChildArgs) -> Failure {
    if let Err(failure) = end_with(args.parent) {
        return failure;
    }
    let [command, arguments @ ..] = args.command.as_slice() else {
        return Failure::Usage("a command is missing".to_owned());
    };
    let error = std::process::Command::new(command)
        .args(arguments)
        .stdin(Stdio::null())
        .exec();
    let command = command.display();
    Failure::Failed(anyhow!("cannot run {command}: {error}"))
}
