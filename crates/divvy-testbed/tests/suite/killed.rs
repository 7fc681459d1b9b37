//! No server is left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, is_alive, until};

use crate::wire::SOON;

/// A process that holds three servers in a directory, and their ids.
fn holder(directory: &Path) -> (Child, Vec<u32>) {
    let mut holder = Command::new(env!("CARGO_BIN_EXE_hold-servers"))
        .env("TMPDIR", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let output = holder.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    let ids: Vec<u32> = line
        .split_whitespace()
        .map(|id| id.parse().unwrap())
        .collect();
    assert_eq!(ids.len(), 3, "{line:?}");
    (holder, ids)
}

#[tokio::test]
async fn killed_process_leaves_no_server() {
    // Nobody is left to remove the servers' files, so they are in a directory of the test's.
    let directory = tempfile::tempdir().unwrap();
    let (mut holder, servers) = holder(directory.path());
    // The thread that started them has ended.
    assert!(servers.iter().all(|id| is_alive(*id)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    until(SOON, "no server runs", async || {
        !servers.iter().any(|id| is_alive(*id))
    })
    .await;
}

#[tokio::test]
async fn ended_process_leaves_no_server() {
    let directory = tempfile::tempdir().unwrap();
    let (mut holder, servers) = holder(directory.path());
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 3);
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    assert!(!servers.iter().any(|id| is_alive(*id)));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[tokio::test]
async fn dropped_server_is_gone_with_its_directory_even_if_paused() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let (id, directory) = (server.pid(), server.directory().to_owned());
    assert!(is_alive(id) && directory.join("log").exists());
    server.pause();
    drop(server);
    assert!(!is_alive(id) && !directory.exists());
}

#[test]
fn missing_server_is_a_failure_that_says_what_to_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_hold-servers"))
        .env("DIVVY_SERVERS", "/nowhere")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "/nowhere/nats-2.15.1/bin/nats-server is missing: run scripts/servers";
    assert!(said.contains(expected), "{said}");
}
