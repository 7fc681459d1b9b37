//! `divvy bench failover`: its exit code, and what it leaves behind.

use std::process::{Child, Stdio};
use std::time::Duration;

use divvy::store::{Prefix, StoreSettings, open_key_value};
use divvy_testbed::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::scratch::Scratch;

const SOON: Duration = Duration::from_secs(60);

/// How many keys the two clusters of a run have in a store.
async fn keys(scratch: &Scratch) -> usize {
    let store = format!("file:{}", scratch.path("a.db").display());
    let mut count = 0;
    for cluster in ["run", "run-start"] {
        let settings = StoreSettings {
            cluster: cluster.to_owned(),
            ..StoreSettings::default()
        };
        let opened = open_key_value(&store.parse().unwrap(), &settings).await;
        count += opened.unwrap().list(&Prefix::ALL).await.unwrap().len();
    }
    count
}

/// So many partitions have a map that is larger than its bound.
#[tokio::test(flavor = "multi_thread")]
async fn a_missed_bound_is_named_and_an_error_after_the_figures() {
    let scratch = Scratch::new();
    let line = "bench failover --store file:./a.db --cluster run --json --workers 2 --kills 1 \
                --partitions 10 --start-workers 2 --start-partitions 10000";
    let run = scratch.run(line.split_whitespace());
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.starts_with("error: missed: "), "{}", run.stderr);
    assert!(run.stderr.contains("map, bytes "), "{}", run.stderr);
    let figures: Value = serde_json::from_str(&run.stdout).unwrap();
    let bounds = figures["bounds"].as_array().unwrap();
    let counted = "first assignment, from the end of its window to the last start, ms";
    assert!(bounds.iter().any(|row| row["name"] == counted), "{figures}");
    assert_eq!(keys(&scratch).await, 0);
}

fn start(scratch: &Scratch) -> Child {
    let line = "bench failover --store file:./a.db --cluster run --workers 5 --start-workers 5 \
                --preset calm";
    let mut command = scratch.command();
    command
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn ended(child: Child) -> (Option<i32>, String) {
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output());
    let ended = tokio::time::timeout(SOON, ended).await.expect("it ends");
    let ended = ended.unwrap().unwrap();
    (
        ended.status.code(),
        String::from_utf8(ended.stderr).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_leaves_no_keys() {
    let scratch = Scratch::new();
    let child = start(&scratch);
    until(SOON, "workers write", async || keys(&scratch).await > 0).await;
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, said) = ended(child).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("error: interrupted while waiting"), "{said}");
    assert_eq!(keys(&scratch).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_workers_die_says_so_and_leaves_no_keys() {
    let scratch = Scratch::new();
    let child = start(&scratch);
    until(SOON, "workers write", async || keys(&scratch).await > 4).await;
    let id = child.id();
    let workers = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    for worker in workers.split_whitespace() {
        let worker = Pid::from_raw(worker.parse().unwrap()).unwrap();
        kill_process(worker, Signal::KILL).unwrap();
    }
    let (code, said) = ended(child).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("ended by itself (signal: 9 (SIGKILL))"),
        "{said}"
    );
    assert!(
        said.contains("error: 4 workers ended by themselves"),
        "{said}"
    );
    assert_eq!(keys(&scratch).await, 0);
}
