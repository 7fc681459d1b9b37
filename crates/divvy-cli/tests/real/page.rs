//! A playground on a real store, as a process, and what it answers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::Deref;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use divvy_testbed::{PlaygroundProcess, is_alive, until, until_some};
use serde_json::{Value, json};

use crate::ground::Ground;

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// It is killed when it is dropped, and its members with it.
pub(crate) struct Page {
    process: PlaygroundProcess,
}

impl Page {
    /// Opens a playground of three workers with 24 partitions.
    pub(crate) fn open(ground: &Ground) -> Self {
        let mut command = ground.playground();
        command.args(["--workers", "3", "--partitions", "24"]);
        Self::start(command)
    }

    pub(crate) fn start(mut command: Command) -> Self {
        Self {
            process: PlaygroundProcess::start(&mut command),
        }
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask("POST", path, &body.to_string())
    }

    pub(crate) fn asked(&self, action: Value) -> (u16, Value) {
        self.post("/api/v1/actions", action)
    }

    /// Does something, which must be done.
    pub(crate) fn act(&self, action: Value) -> Value {
        let (status, answer) = self.asked(action.clone());
        assert_eq!(status, 200, "{action}: {answer}");
        answer
    }

    /// Does something to a worker.
    pub(crate) fn act_on(&self, action: &str, worker: usize) {
        self.act(json!({ "action": action, "worker": worker }));
    }

    /// The first snapshot for which it holds. One is asked for when something
    /// has changed: members on a machine with few cores need them, too.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let seen = async || {
            let seen = Some(self.snapshot()).filter(&holds);
            if seen.is_none() {
                self.follow();
            }
            seen
        };
        until_some(SOON, what, seen).await
    }

    /// Waits for the next news, of which there are ten a second at most.
    fn follow(&self) {
        let (stream, host) = (self.connect(), self.address());
        let request = format!("GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n\r\n");
        (&stream).write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        let is_news = |line: &std::io::Result<String>| {
            let line = line.as_ref().unwrap();
            line.starts_with("data:")
        };
        assert!(lines.any(|line| is_news(&line)), "there is more to come");
    }

    /// Waits until everything has an owner, this worker among them or not.
    pub(crate) async fn until_owned(&self, what: &str, worker: usize, has_some: bool) -> Value {
        self.until(what, |seen| {
            is_owned(seen) && (owned(seen, worker) > 0) == has_some
        })
        .await
    }

    /// The processes of its members.
    pub(crate) fn members(&self) -> Vec<u32> {
        let parent = format!("PPid:\t{}\n", self.id());
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let is_ours = |id: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{id}/status"));
            status.is_ok_and(|status| status.contains(&parent))
        };
        all.filter_map(number).filter(is_ours).collect()
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let child = self.process.child();
        let ended = async || child.try_wait().unwrap();
        until_some(SOON, "it has ended", ended).await
    }
}

impl Deref for Page {
    type Target = PlaygroundProcess;

    fn deref(&self) -> &PlaygroundProcess {
        &self.process
    }
}

/// Whether everything that there is has an owner.
pub(crate) fn is_owned(seen: &Value) -> bool {
    let summary = &seen["summary"];
    summary["partitions"].as_u64() > Some(0) && summary["owned"] == summary["partitions"]
}

/// How many partitions a worker has.
pub(crate) fn owned(seen: &Value, worker: usize) -> u64 {
    let mut workers = seen["workers"].as_array().unwrap().iter();
    let found = workers.find(|one| one["number"] == worker);
    found.map_or(0, |worker| worker["owned"].as_u64().unwrap())
}

/// Waits until none of these processes is there.
pub(crate) async fn until_gone(processes: &[u32]) {
    until(SOON, "no member is left", async || {
        !processes.iter().any(|id| is_alive(*id))
    })
    .await;
}
