//! The command of one partition: started, started again when it ends, and
//! stopped.

use std::io;
use std::os::unix::net::UnixStream as Pair;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use divvy::manager::{Grant, HookError};
use divvy::{Moment, Partition};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::command_line::{CommandLine, Fill};
use super::killed::Killed;
use super::leader::Leader;
use super::ourselves::ourselves;
use super::output::Output;
use super::run_child::permission;
use super::sweeper::Sweeper;
use super::tally;
use crate::args::{STORE_VARIABLE, WEBHOOK_VARIABLE};
use crate::voice::say;

/// How long to wait before a command that has ended is started again, at first
/// and after many times in a row.
const RESTART_FIRST: Duration = Duration::from_secs(1);
const RESTART_LONGEST: Duration = Duration::from_secs(30);
/// Whoever has run for so long did not end at once.
const RAN_WELL: Duration = Duration::from_secs(60);
/// Why it is not started.
const LEASE_ENDED: &str = "its lease has ended: it is not started";
/// Longest word on why a command cannot be run.
const REFUSAL_BYTES_MAX: u64 = 4096;

/// What to run, for which partition, and how.
pub(super) struct RunConfig {
    pub(super) worker: Box<str>,
    pub(super) command: Arc<CommandLine>,
    pub(super) grace: Duration,
    pub(super) output: Output,
    pub(super) sweeper: Arc<Sweeper>,
    pub(super) partition: Partition,
    pub(super) grant: Grant,
}

/// The command of a partition, which runs until it is stopped, or until this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    phase: watch::Receiver<Phase>,
}

/// How far a command has come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Starting,
    Started,
    /// It was not started, and why.
    Refused(String),
    /// It has stopped.
    Ended,
}

impl Running {
    /// Begins to start it. What is begun has to be stopped, also where nobody
    /// waited until it had started.
    pub(super) fn begin(config: RunConfig) -> Self {
        let (stop, stopping) = watch::channel(false);
        let (reported, phase) = watch::channel(Phase::Starting);
        tokio::spawn(Supervisor { config, stopping }.live(reported));
        Self { stop, phase }
    }

    /// Waits until it has started.
    pub(crate) async fn started(&self) -> Result<(), HookError> {
        let mut phase = self.phase.clone();
        let phase = phase.wait_for(|phase| *phase != Phase::Starting).await?;
        match &*phase {
            Phase::Refused(why) => Err(why.clone().into()),
            _ => Ok(()),
        }
    }

    /// Stops it, and returns when nothing of it is alive.
    pub(crate) async fn stop(&self) -> Result<(), HookError> {
        self.stop.send_replace(true);
        let mut phase = self.phase.clone();
        let is_over = |phase: &Phase| matches!(phase, Phase::Refused(_) | Phase::Ended);
        phase.wait_for(is_over).await?;
        Ok(())
    }
}

/// Looks after the command of a partition.
struct Supervisor {
    config: RunConfig,
    stopping: watch::Receiver<bool>,
}

impl Supervisor {
    async fn live(self, phase: watch::Sender<Phase>) {
        match self.spawn().await {
            Ok(leader) => {
                phase.send_replace(Phase::Started);
                self.run(leader).await;
                phase.send_replace(Phase::Ended);
            }
            Err(error) => {
                phase.send_replace(Phase::Refused(error.to_string()));
            }
        }
    }

    /// Starts the command, in a process group of its own, by way of this
    /// program: that sees to it that it does not outlive us, and says if it
    /// cannot be run.
    async fn spawn(&self) -> Result<Leader, HookError> {
        self.config.sweeper.begin().await?;
        self.until()?;
        let (ours, theirs) = Pair::pair()?;
        ours.set_nonblocking(true)?;
        let mut leader = Leader::spawn(self.command(theirs)?)?;
        let mut stopping = self.stopping.clone();
        // It may hang in `execve`, as on a file system that does not answer.
        let launched = tokio::select! {
            launched = self.launch(&mut leader, ours) => launched,
            () = asked_to_stop(&mut stopping) => {
                Err("it was asked to stop before it had started".into())
            }
            () = self.config.grant.ended() => Err(LEASE_ENDED.into()),
        };
        match launched {
            Ok(()) => {
                tally::started();
                Ok(leader)
            }
            Err(error) => {
                tally::refused();
                let _refused = self.end(leader).await;
                Err(error)
            }
        }
    }

    /// Lets the process that is to become the command do so, when it is certain
    /// that it will not outlive its lease.
    async fn launch(&self, leader: &mut Leader, starter: Pair) -> Result<(), HookError> {
        let config = &self.config;
        let name = config.partition.as_str();
        config.output.follow(name, leader.child())?;
        let lease = config.grant.lease();
        config.sweeper.add(leader.run(), Some(lease)).await?;
        let mut starter = UnixStream::from_std(starter)?;
        let permission = permission(self.until()?);
        starter.write_all(permission.as_bytes()).await?;
        let mut refusal = String::new();
        // It ends when the command is there.
        let mut said = starter.take(REFUSAL_BYTES_MAX);
        said.read_to_string(&mut refusal).await?;
        if !refusal.is_empty() {
            return Err(refusal.into());
        }
        self.until().map(drop)
    }

    /// Until when it may run.
    fn until(&self) -> Result<Moment, HookError> {
        let grant = &self.config.grant;
        let until = grant.lease().until().filter(|_| grant.is_current());
        until.ok_or_else(|| LEASE_ENDED.into())
    }

    fn command(&self, starter: Pair) -> Result<Command, HookError> {
        let name = self.config.partition.as_str();
        let (workload, unit) = name.rsplit_once(':').unwrap_or((name, ""));
        let fill = Fill {
            partition: name,
            workload,
            unit,
            token: self.config.grant.token(),
        };
        let (stdout, stderr) = self.config.output.stdio(name)?;
        let mut command = ourselves()?;
        command
            .arg("run-child")
            .arg("--parent")
            .arg(std::process::id().to_string())
            .arg("--")
            .args(self.config.command.filled(&fill))
            // They are for us, and may hold secrets.
            .env_remove(STORE_VARIABLE)
            .env_remove(WEBHOOK_VARIABLE)
            .env("DIVVY_PARTITION", name)
            .env("DIVVY_TOKEN", self.config.grant.token().to_string())
            .env("DIVVY_WORKER", &*self.config.worker)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(starter)))
            .stdout(stdout)
            .stderr(stderr);
        Ok(command)
    }

    async fn run(mut self, mut leader: Leader) {
        let mut failures = 0_u32;
        let mut begun = Instant::now();
        loop {
            let mut stopping = self.stopping.clone();
            tokio::select! {
                () = asked_to_stop(&mut stopping) => return self.stop(leader).await,
                // Another worker may begin: it has to end before it is asked to.
                () = self.config.grant.ended() => {}
                () = leader.exited() => {}
            }
            let has_lost = !self.config.grant.is_current();
            let ended = self.end(leader).await;
            let mut pause = RESTART_FIRST;
            if has_lost {
                tally::killed();
                self.say("its lease has ended: it was killed");
            } else {
                tally::ended();
                if begun.elapsed() >= RAN_WELL {
                    failures = 0;
                }
                pause = pause.saturating_mul(1 << failures.min(5));
                pause = pause.min(RESTART_LONGEST);
                failures += 1;
                self.say(&format!(
                    "{}; starting it again in {pause:?}",
                    describe(ended)
                ));
            }
            match self.again(pause).await {
                Some(next) => leader = next,
                None => return,
            }
            begun = Instant::now();
        }
    }

    /// Starts the command again, as often as it takes; nothing if it has to
    /// stop before.
    async fn again(&mut self, mut pause: Duration) -> Option<Leader> {
        loop {
            tokio::select! {
                () = asked_to_stop(&mut self.stopping) => return None,
                () = sleep(pause) => {}
            }
            if !self.config.grant.is_current() {
                // It will be asked to stop, unless the lease is regained.
                continue;
            }
            match self.spawn().await {
                Ok(leader) => return Some(leader),
                // It ends with the next round.
                Err(_stopped) if *self.stopping.borrow() => {}
                Err(error) => {
                    pause = (pause * 2).min(RESTART_LONGEST);
                    self.say(&format!("{error}; trying again in {pause:?}"));
                }
            }
        }
    }

    /// Asks the command and all that it has started to end, and ends what is
    /// left when its time or its grant is over.
    async fn stop(&self, mut leader: Leader) {
        let (begun, grace) = (Instant::now(), self.config.grace);
        let was_over = !self.config.grant.is_current();
        let terminated = leader.terminate(&self.config.sweeper, |words| self.warn(words));
        let killed = tokio::select! {
            ended = timeout(grace, terminated) => ended.err().map(|_late| Killed::Late),
            // Another worker may begin: there is no more time to be polite.
            () = self.config.grant.ended() => Some(if was_over {
                Killed::AtOnce
            } else {
                Killed::Early(begun.elapsed())
            }),
        };
        let _status = self.end(leader).await;
        if let Some(killed) = killed {
            tally::killed();
            self.say(&killed.describe(grace));
        }
    }

    /// Ends a command and everything that it has started, and returns when
    /// nothing of that is alive.
    async fn end(&self, leader: Leader) -> io::Result<ExitStatus> {
        leader
            .end(&self.config.sweeper, |words| self.warn(words))
            .await
    }

    fn say(&self, words: &str) {
        say!("the command of {}: {words}", self.config.partition);
    }

    fn warn(&self, words: &str) {
        say!("warning: the command of {}: {words}", self.config.partition);
    }
}

async fn asked_to_stop(stopping: &mut watch::Receiver<bool>) {
    // Also when nobody is left who could ask.
    let _gone = stopping.wait_for(|stop| *stop).await.is_err();
}

fn describe(ended: io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => format!("it ended ({status})"),
        Err(error) => format!("it cannot be waited for ({error})"),
    }
}
