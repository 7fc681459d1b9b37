//! A process of divvy, with what it says.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use divvy_testbed::{Heard, until, until_some};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::ask;

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) struct Member {
    child: Child,
    stdout: Heard,
    stderr: Heard,
}

impl Member {
    /// Starts `divvy` with these words.
    pub(crate) fn start(words: &str) -> Self {
        Self::start_with(words, &[])
    }

    /// The same, with more arguments as they are.
    pub(crate) fn start_with(words: &str, more: &[&str]) -> Self {
        Self::reading(command(words).args(more))
    }

    /// The same, on a system that trusts this authority alone.
    pub(crate) fn start_trusting(words: &str, authority: &Path) -> Self {
        Self::reading(command(words).env("SSL_CERT_FILE", authority))
    }

    /// The same, with a variable of the environment.
    pub(crate) fn start_in(words: &str, variable: (&str, &str)) -> Self {
        Self::reading(command(words).env(variable.0, variable.1))
    }

    /// The same for a command whose words are read.
    pub(crate) fn reading(command: &mut Command) -> Self {
        Self::writing_to(command, Stdio::piped(), Stdio::piped())
    }

    /// The same for a command that writes there; pipes are read.
    pub(crate) fn writing_to(command: &mut Command, stdout: Stdio, stderr: Stdio) -> Self {
        let spawned = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let mut child = spawned.spawn().unwrap();
        let stdout = child.stdout.take().map(Heard::of).unwrap_or_default();
        let stderr = child.stderr.take().map(Heard::of).unwrap_or_default();
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// What it said on stderr.
    pub(crate) fn told(&self) -> String {
        self.stderr.text()
    }

    /// The lines of JSON that it printed.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = self.stdout.text();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits until it has said this, wherever.
    pub(crate) async fn tells(&self, words: &str) {
        let said = async || {
            let printed = self.stdout.text().contains(words);
            printed || self.told().contains(words)
        };
        until(SOON, words, said).await;
    }

    /// Where it answers.
    pub(crate) async fn address(&self) -> SocketAddr {
        until_some(SOON, "it says where it answers", async || {
            let told = self.told();
            let (_, rest) = told.split_once("HTTP at http://")?;
            rest.lines().next()?.parse().ok()
        })
        .await
    }

    /// Waits until it is ready, and gives where it answers.
    pub(crate) async fn ready(&self) -> SocketAddr {
        let address = self.address().await;
        until(SOON, "it is ready", async || {
            ask(address, "GET", "/readyz").await.status == 200
        })
        .await;
        address
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is our child");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        until_some(SOON, "it ends", async || child.try_wait().unwrap()).await
    }
}

/// `divvy` with these words.
pub(crate) fn command(words: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("divvy"));
    command
        .args(words.split_whitespace())
        .env_remove("DIVVY_STORE")
        .env_remove("DIVVY_WEBHOOK");
    command
}

impl Drop for Member {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
