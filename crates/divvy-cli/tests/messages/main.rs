//! `divvy bench messages`: real workers, killed and paused, on a server that
//! restarts, and a ledger that counts.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, until};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

/// Longer than anything takes, even on a machine that does much else.
const SOON: Duration = Duration::from_secs(240);

fn bench(server: &NatsServer, more: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("divvy"));
    command
        .args(["bench", "messages", "--json", "--store", &server.url()])
        .args(more)
        .kill_on_drop(true);
    command
}

fn figures(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    let figures = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{figures}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn count(figures: &Value, field: &str) -> u64 {
    let count = figures[field].as_u64();
    count.unwrap_or_else(|| panic!("no {field} in {figures}"))
}

/// Has the server restarted whenever the bench asks for it, by a file.
struct Restarts {
    directory: TempDir,
}

impl Restarts {
    fn wanted(&self) -> PathBuf {
        self.directory.path().join("wanted")
    }

    /// Asks, and waits until it is done.
    fn command(&self) -> String {
        let file = self.wanted();
        let file = file.display();
        format!("touch {file}; while [ -e {file} ]; do sleep 0.02; done")
    }

    async fn until_ended(&self, server: &mut NatsServer, mut running: Command) -> Output {
        let running = running.output();
        tokio::pin!(running);
        loop {
            let wanted = until(SOON, "a restart is wanted", async || self.wanted().exists());
            tokio::select! {
                output = &mut running => return output.unwrap(),
                () = wanted => {}
            }
            server.stop().await;
            server.start_again().await;
            std::fs::remove_file(self.wanted()).unwrap();
        }
    }
}

/// Verifies that workers which join, leave, are killed and are paused, and a
/// server that restarts, lose no message, and repeat none but those that were
/// in flight at a kill.
async fn every_message_counts_once(retention: &str) {
    let mut server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let restarts = Restarts {
        directory: TempDir::new().unwrap(),
    };
    let restart = restarts.command();
    let run = bench(
        &server,
        &[
            "--retention",
            retention,
            "--partitions",
            "200",
            "--messages",
            "10",
            "--rate",
            "400",
            "--workers",
            "3",
            // To be kept on a busy machine.
            "--lease",
            "4s",
            "--faults",
            "--rounds",
            "1",
            "--no-overhead",
            "--restart",
            &restart,
        ],
    );
    let figures = figures(&restarts.until_ended(&mut server, run).await);
    for field in [
        "lost",
        "duplicates_outside_kills",
        "stale_effects",
        "out_of_order",
    ] {
        assert_eq!(count(&figures, field), 0, "{field} in {figures}");
    }
    assert!(count(&figures, "published") >= 200 * 10, "{figures}");
    assert_eq!(figures["published"], figures["processed"], "{figures}");
    let faults = &figures["faults"];
    for (field, expected) in [
        ("joins", 2),
        ("stops", 1),
        ("kills", 1),
        ("pauses", 1),
        ("restarts", 1),
    ] {
        assert_eq!(count(faults, field), expected, "{field} in {figures}");
    }
    // One message of each partition is in flight.
    assert!(count(&figures, "duplicates") <= 3 * 200, "{figures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_stream_of_limits_every_message_counts_once() {
    every_message_counts_once("limits").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_stream_of_interest_every_message_counts_once() {
    every_message_counts_once("interest").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_work_queue_every_message_counts_once() {
    every_message_counts_once("workqueue").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overhead_is_measured_and_nothing_is_left_behind() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let small = ["--partitions", "10", "--messages", "20", "--workers", "2"];
    let figures = figures(&bench(&server, &small).output().await.unwrap());
    assert_eq!(count(&figures, "processed"), 200);
    assert!(figures["overhead"].as_f64().unwrap() > 0.0, "{figures}");
    let latency = &figures["latency_ms"];
    assert!(
        latency["p50"].as_f64() <= latency["p99"].as_f64(),
        "{figures}"
    );
    let left = server.monitor("/jsz?streams=true").await.unwrap();
    // The bucket stays, without a key.
    assert_eq!(left["streams"], 1, "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_consumers_cost_when_idle_is_measured() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let pid = server.pid().to_string();
    let idle = [
        "--partitions",
        "50",
        "--idle",
        "100ms",
        "--server-pid",
        &pid,
    ];
    let cost = figures(&bench(&server, &idle).output().await.unwrap());
    assert_eq!(count(&cost, "consumers"), 50);
    assert!(count(&cost, "server_memory_after") > 0);
    assert!(cost["server_idle_core_share"].is_f64(), "{cost}");
}

#[test]
fn a_store_without_streams_is_refused() {
    let run = std::process::Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
        .args(["bench", "messages", "--store", "memory"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    let told = String::from_utf8(run.stderr).unwrap();
    assert!(
        told.starts_with("error: store 'memory': has no streams of messages"),
        "{told}"
    );
}
