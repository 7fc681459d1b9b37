//! The workers of a run, as processes of this program.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::desk::{SharedLedger, lock};
use super::ledger::Fault;

/// The workers, which end with this.
pub(super) struct Troupe {
    socket: PathBuf,
    cluster: String,
    ledger: SharedLedger,
    /// By number; nothing where one is gone.
    workers: Vec<Option<Child>>,
}

impl Troupe {
    pub(super) fn new(socket: &Path, cluster: &str, ledger: SharedLedger) -> Self {
        Self {
            socket: socket.to_owned(),
            cluster: cluster.to_owned(),
            ledger,
            workers: Vec::new(),
        }
    }

    /// Starts a worker, under a name that none had before.
    pub(super) fn join(&mut self) -> anyhow::Result<()> {
        let number = self.workers.len();
        let program = std::env::current_exe().context("cannot find this program")?;
        let part = format!("{number}:{}:{}", self.cluster, self.socket.display());
        let child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .args(["--part", &part])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a worker")?;
        self.workers.push(Some(child));
        Ok(())
    }

    /// Workers that run.
    pub(super) fn count(&self) -> usize {
        self.workers.iter().flatten().count()
    }

    /// The one that has run longest.
    fn oldest(&self) -> anyhow::Result<usize> {
        let oldest = self.workers.iter().position(Option::is_some);
        oldest.context("there is no worker left")
    }

    fn take(&mut self) -> anyhow::Result<(usize, Child)> {
        let number = self.oldest()?;
        let child = self.workers[number].take();
        Ok((number, child.context("that worker is gone")?))
    }

    /// Asks a worker to end, and waits for that.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        let (_, mut child) = self.take()?;
        send(&child, Signal::TERM)?;
        child.wait().await.context("a worker does not end")?;
        Ok(())
    }

    /// Kills a worker.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        let (number, mut child) = self.take()?;
        let from = divvy::manager::now();
        child.kill().await.context("cannot kill a worker")?;
        self.note(number, from);
        Ok(())
    }

    /// Pauses a worker, which then goes on.
    pub(super) async fn pause(&self, span: Duration) -> anyhow::Result<()> {
        let number = self.oldest()?;
        let from = divvy::manager::now();
        let child = self.workers[number]
            .as_ref()
            .context("that worker is gone")?;
        send(child, Signal::STOP)?;
        sleep(span).await;
        send(child, Signal::CONT)?;
        self.note(number, from);
        Ok(())
    }

    fn note(&self, number: usize, from: divvy::Moment) {
        lock(&self.ledger).happened(Fault {
            worker: u32::try_from(number).ok(),
            from,
            to: divvy::manager::now(),
        });
    }

    /// How many have ended by themselves.
    pub(super) fn failed(&mut self) -> usize {
        let running = self.workers.iter_mut().flatten();
        let ended = running.map(|child| child.try_wait().is_ok_and(|status| status.is_some()));
        ended.filter(|ended| *ended).count()
    }

    /// Asks all to end, and waits for that.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        for child in self.workers.iter().flatten() {
            send(child, Signal::TERM)?;
        }
        for mut child in self.workers.iter_mut().filter_map(Option::take) {
            child.wait().await.context("a worker does not end")?;
        }
        Ok(())
    }
}

fn send(child: &Child, signal: Signal) -> anyhow::Result<()> {
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let id = id.context("a worker has ended by itself")?;
    kill_process(id, signal).context("cannot signal a worker")
}
