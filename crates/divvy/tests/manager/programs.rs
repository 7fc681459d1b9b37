//! Programs as users start them, and one that has to be ended.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{HookError, Hooks, Manager, Overdue, Settings, Shutdown, StaticSource};
use divvy::store::MemoryKeyValue;
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, until};
use rustix::process::{Pid, Signal, kill_process};

use crate::bed::SOON;

/// A process with what it has printed. It does not outlive the test.
struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (out, heard) = (child.stdout.take().unwrap(), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        Self { child, lines }
    }

    fn count(&self, words: &str) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.contains(words)).count()
    }

    /// Partitions that it has started and not stopped.
    fn owned(&self) -> usize {
        self.count(" starts ") - self.count(" has stopped ")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// An example that the documentation names; all targets are built for tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = built.join("examples").join(name);
    let hint = "build it: cargo build --all-features --examples";
    assert!(program.exists(), "{} is missing; {hint}", program.display());
    program
}

fn leader_nats(address: &str, name: &str) -> Program {
    Program::start(Command::new(example("leader_nats")).args([address, name]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_on_nats_shares_and_hands_over() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let mut first = leader_nats(&server.url(), "a");
    until(SOON, "one has everything", async || first.owned() == 16).await;
    let second = leader_nats(&server.url(), "b");
    until(SOON, "both have a share", async || {
        let (one, other) = (first.owned(), second.owned());
        one > 0 && other > 0 && one + other == 16
    })
    .await;
    kill_process(Pid::from_child(&first.child), Signal::INT).unwrap();
    until(SOON, "the other has everything", async || {
        second.owned() == 16
    })
    .await;
    until(SOON, "the first has ended", async || {
        first.child.try_wait().unwrap().is_some()
    })
    .await;
    assert!(first.child.wait().unwrap().success());
}

/// Says that this process is the one that has to be ended.
const PART: &str = "DIVVY_TEST_STUCK";

struct Stuck;

#[async_trait]
impl Hooks for Stuck {
    async fn revoked(&self, _partition: &Partition) -> Result<(), HookError> {
        std::future::pending().await
    }
}

/// What the process does: stops, and a hook never ends.
async fn stuck() {
    let mut settings = Settings::fast();
    settings.instance = Some("stuck".to_owned());
    settings.leader.overdue = Overdue::Abort;
    settings.leader.stop_deadline = Duration::from_millis(300);
    settings.leader.shutdown_timeout = SOON;
    let source = StaticSource::shards(["p"], 2).unwrap();
    let builder = Manager::builder(MemoryKeyValue::new(), source);
    let manager = builder.settings(settings).hooks(Stuck).start();
    let manager = manager.await.unwrap();
    let mut following = manager.watch_assignment();
    while following.current().partitions.len() < 2 {
        following.changed().await;
    }
    let _never = manager.stop(Shutdown::Leave).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_hook_never_ends_is_ended() {
    if std::env::var_os(PART).is_some() {
        return stuck().await;
    }
    let test = "programs::a_process_whose_hook_never_ends_is_ended";
    let itself = std::env::current_exe().unwrap();
    let child = Command::new(itself)
        .args(["--exact", test, "--nocapture"])
        .env(PART, "yes")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output());
    let ended = tokio::time::timeout(SOON, ended).await.expect("it ends");
    let ended = ended.unwrap().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    let abort = Signal::ABORT.as_raw();
    assert_eq!(ended.status.signal(), Some(abort), "{told}");
    assert!(
        told.contains("divvy: ending the process: a hook of p:"),
        "{told}"
    );
}
