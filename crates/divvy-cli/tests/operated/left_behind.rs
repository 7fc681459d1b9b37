//! What commands leave behind: nothing of it outlives them, or the process that
//! runs them.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use divvy_testbed::{ProcessId, is_alive, until, until_some};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use tempfile::TempDir;

use crate::client::ask;
use crate::member::{Member, SOON, command};

/// A command that starts another, writes that one down, and then does this.
fn exec(directory: &Path, rest: &str) -> String {
    let log = directory.join("log");
    let log = log.display();
    format!(
        "sh -c 'sleep 1000 & echo $! {} >> {log}; {rest}'",
        started_at("$!")
    )
}

/// When a process was started, for a shell that writes a [`ProcessId`] down.
fn started_at(pid: &str) -> String {
    format!(r#"$(cut -d" " -f22 /proc/{pid}/stat)"#)
}

/// All that commands started, and how many of them are alive.
fn started(directory: &Path) -> (usize, usize) {
    let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let is_alive = |text: &&str| text.parse().is_ok_and(ProcessId::is_alive);
    let all = text.lines().count();
    (all, text.lines().filter(is_alive).count())
}

/// A lease that no busy machine loses, and time to end.
const CONFIG: &str = "
preset: fast
heartbeat_ttl: 10s
stop_deadline: 60s
shutdown_timeout: 2m
";

fn worker(directory: &Path, more: &[&str]) -> Member {
    worker_of(directory, CONFIG, more)
}

fn worker_of(directory: &Path, text: &str, more: &[&str]) -> Member {
    let (store, config) = (directory.join("store.db"), directory.join("worker.yaml"));
    std::fs::write(&config, text).unwrap();
    let words = format!("worker --store file:{}", store.display());
    let words = format!("{words} --config {} --partitions demo:2", config.display());
    Member::start_with(&words, more)
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

/// Where tests do not run as root, the command is one of the agent's user, and
/// ends when asked to.
#[tokio::test]
async fn a_command_of_another_user_is_reported_and_waited_for() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let (mut agent, run_as) = unprivileged_agent(directory.path());
    let exec = format!(
        "sh -c 'echo $$ > {}; exec {run_as}sleep 1000'",
        log.display()
    );
    let mut agent = Member::reading(agent.args(["--exec", &exec]));
    let foreign = sleeping(&log).await;
    let pid = foreign.0.as_raw_nonzero().get();
    agent.signal(Signal::TERM);
    if !run_as.is_empty() {
        let why = "it cannot be signalled, because it runs as another user";
        agent.tells(&format!("the command of demo:0: {why}")).await;
        let left = format!("still there: {pid} (sleep); {why}");
        agent.tells(&left).await;
        assert!(is_alive(pid.unsigned_abs()) && agent.is_running());
        assert!(!agent.told().contains("demo:0 has stopped"));
        drop(foreign);
    }
    assert!(agent.ended().await.success(), "{}", agent.told());
    assert!(!run_as.is_empty() || !agent.told().contains("signalled"));
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
    let unable = Member::start_with(&words, &["--exec", "/nowhere/{workload}"]);
    unable.tells("cannot run /nowhere/demo").await;
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
    let why = "warning: the sweeper was killed; another one was started";
    worker.tells(why).await;
    let second = sweepers_of(worker.id());
    assert!(second.len() == 1 && second != first, "{second:?}");
    worker.signal(Signal::KILL);
    worker.ended().await;
    until(SOON, "none runs", async || started(at) == (2, 0)).await;
}

fn signal(pid: &str, signal: Signal) {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    kill_process(pid, signal).expect("a process of ours");
}

#[tokio::test]
async fn a_sweeper_that_stands_still_is_replaced_and_keeps_no_command_from_ending() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let mut worker = worker(at, &["--exec", &exec(at, "wait")]);
    until(SOON, "both run", async || started(at) == (2, 2)).await;
    let first = sweepers_of(worker.id());
    signal(&first[0], Signal::STOP);
    let why = "did not answer within 5s and was killed; another one was started";
    worker.tells(&format!("warning: the sweeper {why}")).await;
    let second = sweepers_of(worker.id());
    assert!(second.len() == 1 && second != first, "{second:?}");
    assert_eq!(started(at), (2, 2), "nothing was killed with it");
    signal(&second[0], Signal::STOP);
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.success(), "{}", worker.told());
    assert_eq!(started(at), (2, 0));
}

#[tokio::test]
async fn a_sweeper_that_stood_still_for_a_lease_kills_no_command_whose_lease_was_renewed() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let worker = worker_of(
        at,
        &CONFIG.replace("10s", "2s"),
        &["--exec", &exec(at, "wait")],
    );
    until(SOON, "both run", async || started(at).1 == 2).await;
    // On a machine that does much else, a lease may end all the same.
    until(SOON * 2, "a pause changes nothing", async || {
        let before = started(at);
        let sweepers = sweepers_of(worker.id());
        sweepers.iter().for_each(|pid| signal(pid, Signal::STOP));
        passes(Duration::from_secs(4)).await;
        sweepers.iter().for_each(|pid| signal(pid, Signal::CONT));
        passes(Duration::from_secs(1)).await;
        before.1 == 2 && started(at) == before && sweepers_of(worker.id()) == sweepers
    })
    .await;
}

#[tokio::test]
async fn a_sweeper_that_cannot_be_replaced_is_tried_again_until_it_can() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let mut worker = worker(at, &["--exec", &exec(at, "wait")]);
    until(SOON, "both run", async || started(at) == (2, 2)).await;
    // It can open no more files, and so no pipe to another one.
    let pid = Pid::from_raw(worker.id().cast_signed());
    let none = Rlimit {
        current: Some(0),
        ..getrlimit(Resource::Nofile)
    };
    let before = prlimit(pid, Resource::Nofile, none).unwrap();
    signal(&sweepers_of(worker.id())[0], Signal::KILL);
    let why = "warning: the sweeper was killed; no other one can be started yet: ";
    worker.tells(why).await;
    prlimit(pid, Resource::Nofile, before).unwrap();
    worker.tells("another sweeper was started").await;
    assert_eq!(started(at), (2, 2), "commands run on");
    worker.signal(Signal::KILL);
    worker.ended().await;
    until(SOON, "none runs", async || started(at) == (2, 0)).await;
}

#[tokio::test]
async fn a_stalled_workers_commands_end_with_descendants_that_have_no_mark() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let log = at.join("log");
    let exec = format!(
        "sh -c 'env -i setsid sleep 1000 & echo $! {} >> {}; wait'",
        started_at("$!"),
        log.display()
    );
    let worker = worker(at, &["--exec", &exec]);
    until(SOON, "both run", async || started(at) == (2, 2)).await;
    worker.signal(Signal::STOP);
    until(SOON, "none runs", async || started(at) == (2, 0)).await;
}

/// A process that is stopped stands for one that hangs in `execve`.
#[tokio::test]
async fn a_worker_ends_in_order_while_a_command_hangs_in_its_start() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let exec = "sh -c 'test $DIVVY_PARTITION = demo:1 && exec sleep 1000; exit 1'";
    let mut worker = worker(at, &["--exec", exec]);
    // A process waits to become the command until the sweeper has answered.
    let mut ends = 0;
    let stopped = until_some(SOON, "one is about to be started", async || {
        let ended = worker.told().matches("starting it again").count();
        if std::mem::replace(&mut ends, ended) < ended {
            signal(&sweepers_of(worker.id())[0], Signal::STOP);
        }
        children_of(worker.id(), "run-child").pop()
    })
    .await;
    signal(&stopped, Signal::STOP);
    for sweeper in sweepers_of(worker.id()) {
        signal(&sweeper, Signal::CONT);
    }
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.success(), "{}", worker.told());
    assert!(!is_alive(stopped.parse().unwrap()));
}

/// Lets a process open no more than one more file at a time.
fn leave_one_descriptor(of: u32) -> Rlimit {
    let open = std::fs::read_dir(format!("/proc/{of}/fd")).unwrap();
    let open: BTreeSet<u64> = open
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    let limit = (0..).filter(|number| !open.contains(number)).nth(1);
    let limit = Rlimit {
        current: limit,
        ..getrlimit(Resource::Nofile)
    };
    prlimit(Pid::from_raw(of.cast_signed()), Resource::Nofile, limit).unwrap()
}

#[tokio::test]
async fn a_process_that_cannot_be_looked_at_is_not_taken_for_ended() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let stays = r#"trap "" TERM; echo $$ START >> LOG; while :; do sleep 0.1; done"#;
    let stays = stays.replace("START", &started_at("$$"));
    let stays = stays.replace("LOG", &at.join("log").display().to_string());
    std::fs::write(at.join("stays"), stays).unwrap();
    let exec = format!(
        "sh -c 'setsid sh {} & exec sleep 1000'",
        at.join("stays").display()
    );
    let mut worker = worker(at, &["--grace", "200ms", "--exec", &exec]);
    until(SOON, "it runs", async || started(at) == (2, 2)).await;
    let before = leave_one_descriptor(worker.id());
    worker.signal(Signal::TERM);
    let why = "cannot tell whether all of it has ended: /proc: Too many open files";
    worker.tells(why).await;
    assert!(worker.is_running(), "{}", worker.told());
    let pid = Pid::from_raw(worker.id().cast_signed());
    prlimit(pid, Resource::Nofile, before).unwrap();
    assert!(worker.ended().await.success(), "{}", worker.told());
    assert_eq!(started(at), (2, 0));
}

#[tokio::test]
async fn a_worker_raises_its_limit_of_open_files_and_commands_get_the_former() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let divvy = command("worker --store memory --preset fast --partitions demo:1");
    let mut limited = std::process::Command::new("sh");
    limited
        .args(["-c", "ulimit -S -n 200; exec \"$@\"", "sh"])
        .arg(divvy.get_program())
        .args(divvy.get_args())
        .env_remove("DIVVY_STORE")
        .env_remove("DIVVY_WEBHOOK")
        .arg("--exec")
        .arg(format!(
            "sh -c 'ulimit -S -n > {}; exec sleep 1000'",
            log.display()
        ));
    let worker = Member::reading(&mut limited);
    until(SOON, "it runs", async || {
        std::fs::read_to_string(&log).is_ok_and(|text| text == "200\n")
    })
    .await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", worker.id())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let [soft, hard] = files
        .unwrap()
        .split_whitespace()
        .skip(3)
        .take(2)
        .collect::<Vec<_>>()[..]
    else {
        panic!("{limits}");
    };
    assert_eq!(soft, hard);
}

#[tokio::test]
async fn commands_are_waited_for_where_sigchld_was_ignored() {
    let directory = TempDir::new().unwrap();
    let divvy = command("worker --store memory --preset fast --partitions demo:1");
    let mut ignoring = std::process::Command::new("sh");
    ignoring
        .args(["-c", "trap '' CHLD; exec \"$@\"", "sh"])
        .arg(divvy.get_program())
        .args(divvy.get_args())
        .env_remove("DIVVY_STORE")
        .env_remove("DIVVY_WEBHOOK")
        .args(["--exec", &exec(directory.path(), "exit 3")]);
    let worker = Member::reading(&mut ignoring);
    worker.tells("it ended (exit status: 3); starting it").await;
}

/// The process of this id, which the test ends.
struct Foreign(Pid);

impl Drop for Foreign {
    fn drop(&mut self) {
        let _gone = kill_process(self.0, Signal::KILL);
    }
}

/// An agent that lacks the right to signal processes of other users, and what
/// runs a command as another user. Without root there is no other user.
fn unprivileged_agent(directory: &Path) -> (std::process::Command, &'static str) {
    let store = directory.join("store.db");
    let words = format!("agent --store file:{} --preset fast", store.display());
    let divvy = command(&format!("{words} --workloads demo:1 --grace 1s"));
    if !rustix::process::geteuid().is_root() {
        return (divvy, "");
    }
    let mut limited = std::process::Command::new("setpriv");
    limited
        .args(["--bounding-set=-kill", "--inh-caps=-kill", "--"])
        .arg(divvy.get_program())
        .args(divvy.get_args())
        .env_remove("DIVVY_STORE")
        .env_remove("DIVVY_WEBHOOK");
    (limited, "setpriv --reuid=65534 --clear-groups -- ")
}

async fn passes(span: Duration) {
    let begun = Instant::now();
    until(SOON, "time has passed", async || begun.elapsed() >= span).await;
}

/// The first process that wrote itself down and has become `sleep`.
async fn sleeping(log: &Path) -> Foreign {
    let pid = until_some(SOON, "it runs", async || {
        let text = std::fs::read_to_string(log).ok()?;
        let pid: i32 = text.lines().next()?.parse().ok()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "sleep").then_some(pid)
    });
    Foreign(Pid::from_raw(pid.await).unwrap())
}

#[tokio::test]
async fn a_process_of_another_user_behind_a_shell_is_reported_as_not_signalled() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let (mut agent, run_as) = unprivileged_agent(directory.path());
    let exec = format!(
        "sh -c '{run_as}sleep 1000 & echo $! >> {}; wait'",
        log.display()
    );
    let mut agent = Member::reading(agent.args(["--exec", &exec]));
    let foreign = sleeping(&log).await;
    let pid = foreign.0.as_raw_nonzero();
    agent.signal(Signal::TERM);
    if !run_as.is_empty() {
        let why = "it cannot be signalled, because it runs as another user";
        for words in [why, &format!("still there: {pid} (sleep); {why}")] {
            agent
                .tells(&format!("warning: the command of demo:0: {words}"))
                .await;
        }
        assert!(!agent.told().contains("demo:0 has stopped"));
    }
    drop(foreign);
    assert!(agent.ended().await.success(), "{}", agent.told());
    assert!(!agent.told().contains("killed, and still there"));
}

#[tokio::test]
async fn a_health_command_that_cannot_be_ended_is_not_started_again_beside_itself() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let (mut agent, run_as) = unprivileged_agent(directory.path());
    if run_as.is_empty() {
        // Without root, every command can be ended.
        return;
    }
    let health = format!(
        "sh -c 'echo $$ >> {}; exec {run_as}sleep 1000'",
        log.display()
    );
    let more = ["--exec", "sleep 1000", "--health-interval", "200ms"];
    let agent = Member::reading(agent.args(more).args(["--health-cmd", &health]));
    let foreign = sleeping(&log).await;
    let pid = foreign.0.as_raw_nonzero();
    let left = format!("warning: --health-cmd: still there: {pid} (sleep); it cannot be signalled");
    agent.tells(&left).await;
    let started = || std::fs::read_to_string(&log).unwrap().lines().count();
    assert_eq!(started(), 1);
    drop(foreign);
    until(SOON, "it is asked again", async || started() == 2).await;
    // Also the second is another user's.
    let text = std::fs::read_to_string(&log).unwrap();
    let second = text.lines().nth(1).and_then(|pid| pid.parse().ok());
    let _second = Foreign(second.and_then(Pid::from_raw).unwrap());
}

fn sweepers_of(parent: u32) -> Vec<String> {
    children_of(parent, "sweep-children")
}

/// The children of a process with this part of divvy.
fn children_of(parent: u32, part: &str) -> Vec<String> {
    let path = format!("/proc/{parent}/task");
    let mut found = Vec::new();
    for task in std::fs::read_dir(path).unwrap().flatten() {
        let children = std::fs::read_to_string(task.path().join("children"));
        let children = children.unwrap_or_default();
        found.extend(children.split_whitespace().map(str::to_owned));
    }
    found.retain(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.unwrap_or_default().split('\0').nth(1) == Some(part)
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

#[test]
fn a_command_whose_lease_has_ended_meanwhile_is_not_run() {
    let directory = TempDir::new().unwrap();
    let made = directory.path().join("made");
    let child = |until: &str| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut child = command(&format!(
            "run-child --parent {} -- touch",
            std::process::id()
        ))
        .arg(&made)
        .stdin(std::process::Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
        writeln!(ours, "{until}").unwrap();
        let mut refusal = String::new();
        ours.read_to_string(&mut refusal).unwrap();
        child.wait().unwrap();
        refusal
    };
    let refusal = child("1");
    assert!(
        refusal.contains("its lease ended before it was started"),
        "{refusal}"
    );
    assert!(!made.exists());
    assert_eq!(child(&u64::MAX.to_string()), "");
    assert!(made.exists());
}
