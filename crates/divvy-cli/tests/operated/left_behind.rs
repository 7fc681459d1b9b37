//! What commands leave behind: nothing of it outlives them, or the process that
//! runs them.

use std::path::Path;

use divvy_testbed::{is_alive, until, until_some};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::ask;
use crate::member::{Member, SOON, command};

/// A command that starts another, writes that one down, and then does this.
fn exec(directory: &Path, rest: &str) -> String {
    let log = directory.join("log");
    format!("sh -c 'sleep 1000 & echo $! >> {}; {rest}'", log.display())
}

/// All that commands started, and how many of them are alive.
fn started(directory: &Path) -> (usize, usize) {
    let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let is_alive = |pid: &&str| pid.parse().is_ok_and(is_alive);
    let all = text.lines().count();
    (all, text.lines().filter(is_alive).count())
}

fn worker(directory: &Path, more: &[&str]) -> Member {
    let store = directory.join("store.db");
    let words = format!("worker --store file:{} --preset fast", store.display());
    Member::start_with(&format!("{words} --partitions demo:2"), more)
}

#[tokio::test]
async fn what_commands_have_started_dies_with_a_killed_member() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let mut worker = worker(at, &["--exec", &exec(at, "wait")]);
    until(SOON, "both run", async || started(at) == (2, 2)).await;
    worker.signal(Signal::KILL);
    worker.ended().await;
    until(SOON, "none runs", async || started(at) == (2, 0)).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_gone_before_it_is_started_again() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let mut worker = worker(at, &["--exec", &exec(at, "sleep 0.1")]);
    until(SOON, "both are started again", async || {
        let (all, alive) = started(at);
        assert!(alive <= 2, "{alive} of {all} are alive");
        all >= 4
    })
    .await;
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.success(), "{}", worker.told());
    assert_eq!(started(at).1, 0);
}

/// The process of this id, which the test ends.
struct Ended(Pid);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = kill_process(self.0, Signal::KILL);
    }
}

/// An agent that is root and lacks the right to signal processes of other users
/// runs a command as another user. Where tests do not run as root, that is
/// impossible: the command is one of the agent's user, and ends when asked to.
#[tokio::test]
async fn a_command_of_another_user_is_reported_and_waited_for() {
    let superuser = rustix::process::geteuid().is_root();
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let (store, log) = (at.join("store.db"), at.join("log"));
    let words = format!("agent --store file:{} --preset fast", store.display());
    let mut divvy = command(&format!("{words} --workloads demo:1 --grace 1s"));
    let mut limited = std::process::Command::new("setpriv");
    limited.args(["--bounding-set=-kill", "--inh-caps=-kill", "--"]);
    limited.arg(divvy.get_program()).args(divvy.get_args());
    limited
        .env_remove("DIVVY_STORE")
        .env_remove("DIVVY_WEBHOOK");
    let (starts, run_as) = if superuser {
        (&mut limited, "setpriv --reuid=65534 --clear-groups -- ")
    } else {
        (&mut divvy, "")
    };
    let exec = format!(
        "sh -c 'echo $$ > {}; exec {run_as}sleep 1000'",
        log.display()
    );
    let mut agent = Member::reading(starts.args(["--exec", &exec]));
    let pid = until_some(SOON, "it runs", async || {
        let pid = std::fs::read_to_string(&log).ok()?.trim().parse().ok()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "sleep").then_some(pid)
    })
    .await;
    // Nobody else can.
    let command = superuser.then(|| Ended(Pid::from_raw(pid).unwrap()));
    agent.signal(Signal::TERM);
    if superuser {
        let why = "it cannot be signalled, because it runs as another user";
        agent.tells(&format!("the command of demo:0: {why}")).await;
        let left = format!("still there: {pid} (sleep); {why}");
        agent.tells(&left).await;
        assert!(is_alive(pid.unsigned_abs()) && agent.is_running());
        assert!(!agent.told().contains("demo:0 has stopped"));
        drop(command);
    }
    assert!(agent.ended().await.success(), "{}", agent.told());
    assert!(superuser || !agent.told().contains("signalled"));
    assert!(!is_alive(pid.unsigned_abs()));
}

#[tokio::test]
async fn a_health_command_that_takes_too_long_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let store = at.join("store.db");
    let words = format!("agent --store file:{} --preset fast", store.display());
    let words = format!("{words} --workloads demo:1 --health-interval 200ms");
    let health = exec(at, "wait");
    let mut agent = Member::start_with(&words, &["--exec", "sleep 9", "--health-cmd", &health]);
    until(SOON, "it is asked several times", async || {
        let (all, alive) = started(at);
        assert!(alive <= 1, "{alive} of {all} are alive");
        all >= 4
    })
    .await;
    agent.signal(Signal::KILL);
    agent.ended().await;
    until(SOON, "none runs", async || started(at).1 == 0).await;
}

#[tokio::test]
async fn partitions_whose_command_cannot_be_run_are_owned_by_others() {
    let directory = TempDir::new().unwrap();
    let store = directory.path().join("store.db");
    let words = format!("agent --store file:{} --preset fast", store.display());
    let words = format!("{words} --workloads demo:6 --listen 127.0.0.1:0");
    let unable = Member::start_with(&words, &["--exec", "/nowhere/at-all {unit}"]);
    unable.tells("cannot run /nowhere/at-all").await;
    let able = Member::start_with(&words, &["--exec", "sleep 1000"]);
    let address = able.ready().await;
    until(SOON, "the other has all", async || {
        let owned = ask(address, "GET", "/v1/owned").await.json();
        owned["partitions"].as_array().unwrap().len() == 6
    })
    .await;
    let metrics = ask(unable.address().await, "GET", "/metrics").await.body;
    let failures = metrics
        .lines()
        .find(|line| line.starts_with("divvy_lease_start_failures_total"));
    assert!(
        failures.is_some_and(|line| !line.ends_with(" 0")),
        "{metrics}"
    );
}

#[tokio::test]
async fn commands_are_started_again_after_the_program_was_replaced() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let (installed, itself) = (at.join("divvy"), assert_cmd::cargo::cargo_bin!("divvy"));
    if std::fs::hard_link(itself, &installed).is_err() {
        std::fs::copy(itself, &installed).unwrap();
    }
    let store = at.join("store.db");
    let mut started_by = std::process::Command::new(&installed);
    started_by
        .args(["worker", "--preset", "fast", "--partitions", "demo:1"])
        .arg("--store")
        .arg(format!("file:{}", store.display()))
        .args(["--exec", &exec(at, "sleep 0.1")]);
    let _worker = Member::reading(&mut started_by);
    until(SOON, "it runs", async || started(at).0 >= 1).await;
    std::fs::remove_file(&installed).unwrap();
    let before = started(at).0;
    until(SOON, "it runs again", async || started(at).0 > before + 1).await;
}

#[tokio::test]
async fn signals_for_all_processes_leave_the_sweeper_for_last() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let mut worker = worker(at, &["--exec", &exec(at, "wait")]);
    until(SOON, "both run", async || started(at) == (2, 2)).await;
    let sweepers = sweepers_of(worker.id());
    assert_eq!(sweepers.len(), 1);
    for pid in &sweepers {
        for signal in ["-TERM", "-INT", "-HUP"] {
            let sent = std::process::Command::new("kill")
                .args([signal, pid])
                .status();
            assert!(sent.unwrap().success());
        }
    }
    worker.signal(Signal::KILL);
    worker.ended().await;
    until(SOON, "none runs", async || started(at) == (2, 0)).await;
    until(SOON, "the sweeper has ended", async || {
        let path = |pid: &String| format!("/proc/{pid}/cmdline");
        let read = |pid| std::fs::read_to_string(path(pid)).unwrap_or_default();
        sweepers
            .iter()
            .all(|pid| !read(pid).contains("sweep-children"))
    })
    .await;
}

#[tokio::test]
async fn a_sweeper_that_is_killed_has_a_successor() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let mut worker = worker(at, &["--exec", &exec(at, "wait")]);
    until(SOON, "both run", async || started(at) == (2, 2)).await;
    let first = sweepers_of(worker.id());
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &first[0]])
        .status();
    assert!(killed.unwrap().success());
    worker.tells("another one has taken its place").await;
    let second = sweepers_of(worker.id());
    assert!(second.len() == 1 && second != first, "{second:?}");
    worker.signal(Signal::KILL);
    worker.ended().await;
    until(SOON, "none runs", async || started(at) == (2, 0)).await;
}

fn sweepers_of(parent: u32) -> Vec<String> {
    let path = format!("/proc/{parent}/task");
    let mut found = Vec::new();
    for task in std::fs::read_dir(path).unwrap().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap();
        found.extend(children.split_whitespace().map(str::to_owned));
    }
    found.retain(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.unwrap_or_default().contains("sweep-children")
    });
    found
}

#[test]
fn the_part_that_becomes_a_command_says_why_it_cannot() {
    let mut refused = command("run-child --parent 1 -- true");
    let output = refused.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "error: who started it has ended\n");
}
