//! Members whose words nobody reads: nothing that they promise waits for that.

use std::fs::File;
use std::io::PipeReader;
use std::path::Path;
use std::process::Stdio;

use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, is_alive, until};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

use crate::member::{Member, SOON, command};

/// A command that writes itself down, says more than a pipe holds, and does not
/// want to end.
fn loud(directory: &Path) -> String {
    let log = directory.join("log");
    let much = "head -c 300000 /dev/zero | tr \"\\\\0\" x | fold >&2";
    let script = format!("echo $$ >> {}; {much} & trap \"\" TERM", log.display());
    format!("sh -c '{script}; while :; do sleep 0.1; done'")
}

fn alive(directory: &Path) -> usize {
    let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let is_alive = |pid: &&str| pid.parse().is_ok_and(is_alive);
    text.lines().filter(is_alive).count()
}

/// An agent with two commands, whose stderr is a pipe that nobody reads.
fn unread(store: &str, directory: &Path) -> (Member, PipeReader) {
    let words = format!("agent --store {store} --preset fast --workloads demo:2 --grace 500ms");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = command(&words);
    let command = command.args(["--exec", &loud(directory)]);
    let agent = Member::writing_to(command, Stdio::null(), writer.into());
    (agent, reader)
}

/// Waits until whoever writes there has to wait: much is in it, and no more
/// comes.
async fn is_full(pipe: &PipeReader) {
    let (mut before, mut same) = (0, 0);
    until(SOON, "the pipe is full", async || {
        let now = rustix::io::ioctl_fionread(pipe).unwrap();
        same = if now == before { same + 1 } else { 0 };
        before = now;
        now > 16_384 && same > 100
    })
    .await;
}

#[tokio::test]
async fn an_agent_whose_stderr_nobody_reads_ends_in_order() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let store = format!("file:{}", at.join("store.db").display());
    let (mut agent, pipe) = unread(&store, at);
    until(SOON, "both run", async || alive(at) == 2).await;
    is_full(&pipe).await;
    agent.signal(Signal::TERM);
    // Something was not read; everything else is done.
    assert_eq!(agent.ended().await.code(), Some(1));
    assert_eq!(alive(at), 0);
}

#[tokio::test]
async fn an_agent_whose_stderr_nobody_reads_ends_its_commands_with_its_leases() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let (_agent, pipe) = unread(&server.url(), at);
    until(SOON, "both run", async || alive(at) == 2).await;
    is_full(&pipe).await;
    server.pause();
    until(SOON, "none runs", async || alive(at) == 0).await;
    server.resume();
}

#[tokio::test]
async fn an_agent_whose_stderr_is_closed_goes_on() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let store = format!("file:{}", at.join("store.db").display());
    let (mut agent, pipe) = unread(&store, at);
    drop(pipe);
    until(SOON, "both run", async || alive(at) == 2).await;
    agent.signal(Signal::TERM);
    assert!(agent.ended().await.success());
    assert_eq!(alive(at), 0);
}

#[tokio::test]
async fn an_agent_whose_stdout_nobody_reads_ends_and_says_so() {
    let directory = TempDir::new().unwrap();
    let store = directory.path().join("store.db");
    let words = format!("agent --store file:{} --preset fast", store.display());
    let mut command = command(&format!("{words} --workloads demo:1"));
    let (reader, writer) = std::io::pipe().unwrap();
    let command = command.args(["--exec", "yes"]);
    let mut agent = Member::writing_to(command, writer.into(), Stdio::piped());
    is_full(&reader).await;
    agent.signal(Signal::TERM);
    assert_eq!(agent.ended().await.code(), Some(1));
    agent.tells("divvy: ended\n").await;
    agent.tells("nobody has read all that commands wrote").await;
}

#[tokio::test]
async fn an_agent_ends_with_its_terminal() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = File::options()
        .write(true)
        .read(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let store = at.join("store.db");
    let words = format!("agent --store file:{} --preset fast", store.display());
    let mut command = command(&format!("{words} --workloads demo:2 --grace 300ms"));
    let command = command.args(["--exec", &loud(at).replace(">&2", "> /dev/null")]);
    let mut agent = Member::writing_to(command, Stdio::null(), side.into());
    until(SOON, "both run", async || alive(at) == 2).await;
    // As a shell that is told of it tells its own.
    drop(terminal);
    agent.signal(Signal::HUP);
    assert!(agent.ended().await.success());
    assert_eq!(alive(at), 0);
}
