//! Commands that a worker runs, and what it reads again.

use std::collections::BTreeMap;
use std::path::Path;

use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, is_alive, until};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::client::ask;
use crate::member::{Member, SOON};

/// A worker whose commands write down who they are.
fn worker(directory: &Path, name: &str, more: &str, rest: &str) -> Member {
    let log = directory.join("log");
    let log = log.display();
    let script = format!(
        "echo $DIVVY_PARTITION $DIVVY_TOKEN $DIVVY_WORKER $$ >> {log}; echo hello from $1; {rest}"
    );
    let exec = format!("sh -c '{script}' sh {{partition}}/{{workload}}/{{unit}}");
    let store = directory.join("workers.db");
    let words = format!("worker --store file:{} --instance {name}", store.display());
    let words = format!("{words} --strategy balanced --listen 127.0.0.1:0 {more}");
    Member::start_with(&words, &["--exec", &exec])
}

/// The last command of each partition that is alive: its worker and process.
fn running(directory: &Path) -> BTreeMap<String, (String, u32)> {
    let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    let mut running = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [partition, token, worker, pid] = words[..] else {
            continue;
        };
        assert!(token.parse::<i64>().unwrap() > 0);
        let pid: u32 = pid.parse().unwrap();
        if is_alive(pid) {
            let before = running.insert(partition.to_owned(), (worker.to_owned(), pid));
            assert_eq!(before, None, "{partition} runs twice");
        }
    }
    running
}

#[tokio::test]
async fn a_worker_runs_a_command_for_each_partition_and_stops_it_before_others_have_it() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let more = "--preset fast --partitions demo:6";
    let mut one = worker(at, "a", more, "exec sleep 1000");
    one.ready().await;
    until(SOON, "all run", async || running(at).len() == 6).await;
    one.tells("demo:3 | hello from demo:3/demo/3\n").await;
    let printed = one.lines();
    assert!(printed.iter().any(|line| line["event"] == "started"));
    assert!(printed.iter().all(|line| line["event"].is_string()));
    let two = worker(at, "b", more, "exec sleep 1000");
    two.ready().await;
    until(SOON, "both run some", async || {
        let running = running(at);
        let ids: std::collections::BTreeSet<_> = running.values().map(|(id, _)| id).collect();
        running.len() == 6 && ids.len() == 2
    })
    .await;
    one.signal(Signal::TERM);
    let ended = one.ended().await;
    assert!(ended.success(), "{ended}: {}", one.told());
    until(SOON, "the other runs all", async || running(at).len() == 6).await;
}

#[tokio::test]
async fn the_commands_of_a_killed_worker_die_with_it() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let more = "--preset fast --partitions demo:3";
    let mut worker = worker(at, "a", more, "exec sleep 1000");
    until(SOON, "all run", async || running(at).len() == 3).await;
    worker.signal(Signal::KILL);
    worker.ended().await;
    until(SOON, "none runs", async || running(at).is_empty()).await;
}

#[tokio::test]
async fn a_command_of_a_worker_that_ignores_sigterm_is_ended_after_its_grace() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let more = "--preset fast --partitions demo:2 --grace 300ms";
    let stubborn = "trap \"\" TERM; while :; do sleep 0.1; done";
    let mut worker = worker(at, "a", more, stubborn);
    until(SOON, "all run", async || running(at).len() == 2).await;
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.success(), "{}", worker.told());
    worker.tells("did not end in time").await;
    assert!(running(at).is_empty());
}

#[tokio::test]
async fn partitions_are_read_again_on_sighup_and_bad_ones_change_nothing() {
    let directory = TempDir::new().unwrap();
    let at = directory.path();
    let config = at.join("worker.yaml");
    let write = |text: &str| std::fs::write(&config, format!("preset: fast\n{text}\n")).unwrap();
    write("groups: [demo]\nshards_per_group: 3");
    let more = format!("--config {}", config.display());
    let worker = worker(at, "a", &more, "exec sleep 1000");
    let address = worker.ready().await;
    until(SOON, "all run", async || running(at).len() == 3).await;
    write("groups: [demo, mail]\nshards_per_group: 2\nweight: 3\nheartbeat_ttl: 1s\ntick: 9s");
    worker.signal(Signal::HUP);
    let taken = "read again: groups, shards_per_group, weight; these take a restart: ";
    let left = "heartbeat_ttl, leader_lease, tick";
    worker.tells(&format!("{taken}{left}\n")).await;
    until(SOON, "the new ones run", async || {
        let names: Vec<String> = running(at).into_keys().collect();
        names == ["demo:0", "demo:1", "mail:0", "mail:1"]
    })
    .await;
    let owned = async || {
        let owned = ask(address, "GET", "/v1/owned").await.json();
        owned["partitions"].as_array().unwrap().len()
    };
    // The command that ended is owned until the worker has seen that it ended.
    until(SOON, "only the new ones are owned", async || {
        owned().await == 4
    })
    .await;
    worker.signal(Signal::HUP);
    worker
        .tells("nothing has changed that can be taken while it runs; these")
        .await;
    write("groups: [demo]\nshards_per_group: none");
    worker.signal(Signal::HUP);
    worker.tells("everything stays as it is").await;
    assert_eq!(owned().await, 4);
}

#[tokio::test]
async fn a_worker_that_cannot_run_its_command_says_so() {
    let words = "worker --store memory --preset fast --partitions demo:1 --run-for 3s";
    let mut worker = Member::start_with(words, &["--exec", "/nowhere/at-all"]);
    worker.tells("exec '/nowhere/at-all': is no program").await;
    assert!(!worker.ended().await.success());
    // One that is found only when it is run is told by way of divvy itself.
    let mut worker = Member::start_with(words, &["--exec", "/nowhere/{workload}"]);
    worker.tells("cannot run /nowhere/demo").await;
    worker.ended().await;
}

#[tokio::test]
async fn a_start_that_fails_again_and_again_is_told_in_one_line() {
    let words = "agent --store memory --preset fast --workloads demo:1 --listen 127.0.0.1:0";
    let agent = Member::start_with(words, &["--exec", "/nowhere/{workload}"]);
    let address = agent.address().await;
    until(SOON, "it was tried several times", async || {
        let metrics = ask(address, "GET", "/metrics").await.body;
        let failures = metrics
            .lines()
            .find(|line| line.starts_with("divvy_lease_start_failures_total"));
        let failures = failures.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        failures.is_some_and(|failures: u64| failures >= 4)
    })
    .await;
    let told = agent.told();
    let about: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("demo:0"))
        .collect();
    assert_eq!(about.len(), 1, "{told}");
    let words = "demo:0 could not be started, and is tried again: cannot run /nowhere/demo";
    assert!(about[0].contains(words), "{told}");
}

#[tokio::test]
async fn a_server_that_is_gone_is_told_in_one_line() {
    let mut server = RedisServer::start(RedisFlavour::Redis7, RedisOptions::new()).await;
    let words = format!("agent --store {} --preset fast", server.url());
    let words = format!("{words} --workloads demo:2 --listen 127.0.0.1:0");
    let agent = Member::start_with(&words, &["--exec", "sleep 1000"]);
    agent.tells("demo:0 runs").await;
    agent.tells("demo:1 runs").await;
    let before = agent.told().lines().count();
    server.kill();
    agent.tells("demo:0 has stopped").await;
    agent.tells("demo:1 has stopped").await;
    let told = agent.told();
    let about = told.lines().skip(before);
    let about: Vec<&str> = about.filter(|line| !line.contains("demo:")).collect();
    assert_eq!(about.len(), 1, "{told}");
    assert!(
        about[0].contains("connection to the store lost: "),
        "{told}"
    );
}

#[tokio::test]
async fn two_agents_of_one_host_get_different_names() {
    let directory = TempDir::new().unwrap();
    let store = directory.path().join("agents.db");
    let words = format!("agent --store file:{} --preset fast", store.display());
    let words = format!("{words} --workloads demo:4 --listen 127.0.0.1:0");
    let mut names = Vec::new();
    let agents = [0, 1].map(|_| Member::start_with(&words, &["--exec", "sleep 1000"]));
    for agent in &agents {
        let address = agent.ready().await;
        let owned = ask(address, "GET", "/v1/owned").await.json();
        let name = owned["worker"].as_str().unwrap().to_owned();
        let told = format!(
            "divvy: {name} of cluster 'default' at file:{}",
            store.display()
        );
        assert!(agent.told().contains(&told), "{}", agent.told());
        assert!(agent.told().contains("demo:4"), "{}", agent.told());
        names.push(name);
    }
    assert_ne!(names[0], names[1]);
}

#[tokio::test]
async fn commands_that_end_by_themselves_are_counted() {
    for words in [
        "agent --workloads demo:1 --store memory",
        "worker --partitions demo:1 --store memory",
    ] {
        let words = format!("{words} --preset fast --listen 127.0.0.1:0");
        let member = Member::start_with(&words, &["--exec", "sh -c 'exit 3'"]);
        let address = member.ready().await;
        let count = async |name: &str| -> u64 {
            let page = ask(address, "GET", "/metrics").await.body;
            let mut lines = page.lines();
            let line = lines.find(|line| line.starts_with(&format!("divvy_{name}{{")));
            let (_, count) = line.unwrap().rsplit_once(' ').unwrap();
            count.parse().unwrap()
        };
        until(SOON, "it has ended twice", async || {
            count("command_exits_total").await >= 2
        })
        .await;
        assert!(count("command_starts_total").await >= 2, "{words}");
        assert_eq!(count("command_failures_total").await, 0, "{words}");
    }
}

#[tokio::test]
async fn a_file_is_all_that_an_agent_or_a_worker_needs() {
    for kind in ["agent", "worker"] {
        let directory = TempDir::new().unwrap();
        let at = directory.path();
        let owned = match kind {
            "agent" => "node: a\nworkloads: demo:2\ngrace: 1s",
            _ => "instance: a\npartitions: demo:2\nexec_grace: 1s",
        };
        let text = format!(
            "preset: fast\nstore: file:{}\nlisten: 127.0.0.1:0\nexec: sleep 1000\n{owned}\n",
            at.join("all.db").display()
        );
        let config = at.join("all.yaml");
        std::fs::write(&config, text).unwrap();
        let mut member = Member::start(&format!("{kind} --config {}", config.display()));
        let address = member.ready().await;
        until(SOON, "both are owned", async || {
            let owned = ask(address, "GET", "/v1/owned").await.json();
            owned["partitions"].as_array().unwrap().len() == 2
        })
        .await;
        member.signal(Signal::TERM);
        assert!(member.ended().await.success(), "{}", member.told());
    }
}
