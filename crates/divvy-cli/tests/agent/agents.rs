//! Agents as processes, and the commands that they run, by what those wrote
//! down of themselves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use divvy_testbed::{Heard, ProcessId, RedisServer, is_alive, until, until_some};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Has a shell know when it was started, as [`ProcessId::started`].
const STARTED: &str =
    "started() { read -r stat < /proc/$$/stat; set -- $stat; started=${22}; }; started";

pub(crate) struct Agents {
    server: Option<RedisServer>,
    directory: TempDir,
    agents: Vec<Agent>,
    /// What they run.
    pub(crate) exec: String,
}

struct Agent {
    name: String,
    child: Child,
    stdout: Heard,
    stderr: Heard,
}

impl Agents {
    pub(crate) fn on_file() -> Self {
        Self::new(None)
    }

    pub(crate) fn on_redis(server: RedisServer) -> Self {
        Self::new(Some(server))
    }

    fn new(server: Option<RedisServer>) -> Self {
        let mut agents = Self {
            server,
            directory: TempDir::new().unwrap(),
            agents: Vec::new(),
            exec: String::new(),
        };
        agents.exec = agents.script("exec sleep 1000");
        agents
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn log(&self) -> PathBuf {
        self.directory().join("log")
    }

    /// A command that writes down who it is, and then does this.
    pub(crate) fn script(&self, rest: &str) -> String {
        let log = self.log();
        let log = log.display();
        let text = format!(
            "#!/bin/sh\n{STARTED}\necho $DIVVY_PARTITION $DIVVY_TOKEN $DIVVY_WORKER $$ $started \"$@\" >> {log}\n{rest}\n"
        );
        let path = self.directory().join("command.sh");
        std::fs::write(&path, text).unwrap();
        format!("sh '{}' {{workload}}:{{unit}} {{token}}", path.display())
    }

    fn address(&self) -> String {
        match &self.server {
            Some(server) => server.url(),
            None => format!("file:{}", self.directory().join("agents.db").display()),
        }
    }

    /// Starts an agent that serves `demo:8`.
    pub(crate) fn start(&mut self, more: &[&str]) {
        let usual = ["--preset", "fast", "--workloads", "demo:8"];
        self.start_with(&[&usual[..], more].concat());
    }

    pub(crate) fn start_with(&mut self, more: &[&str]) {
        let name = format!("agent-{}", self.agents.len());
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
            .args(["agent", "--store", &self.address(), "--node", &name])
            .args(["--exec", &self.exec])
            .args(more)
            .env_remove("JOURNAL_STREAM")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = Heard::of(child.stdout.take().unwrap());
        let stderr = Heard::of(child.stderr.take().unwrap());
        self.agents.push(Agent {
            name,
            child,
            stdout,
            stderr,
        });
    }

    /// Runs `divvy workload`; gives what it printed, or why it refused.
    pub(crate) fn workload(&self, arguments: &str) -> Result<String, String> {
        let output = Command::new(assert_cmd::cargo::cargo_bin!("divvy"))
            .arg("workload")
            .args(arguments.split(' '))
            .args(["--store", &self.address()])
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    }

    /// Waits until so many partitions run, and every agent that is alive has
    /// some.
    pub(crate) async fn shared(&self, partitions: usize) {
        let all = BTreeSet::from_iter((0..self.agents.len()).filter(|at| self.is_up(*at)));
        until(SOON, "all run, and all agents have some", async || {
            self.check();
            let has_some = |at: &usize| !self.processes_of(*at).is_empty();
            self.running().len() == partitions && all.iter().all(has_some)
        })
        .await;
    }

    fn is_up(&self, at: usize) -> bool {
        is_alive(self.agents[at].child.id())
    }

    /// Commands that run: of which partition, by which process and token.
    pub(crate) fn running(&self) -> Vec<(String, ProcessId, i64)> {
        let lines = self.lines().into_iter();
        lines
            .filter(|line| line.process.is_alive())
            .map(|line| (line.partition, line.process, line.token))
            .collect()
    }

    /// The commands of one agent that run.
    pub(crate) fn processes_of(&self, at: usize) -> Vec<ProcessId> {
        let name = &self.agents[at].name;
        let lines = self.lines().into_iter();
        lines
            .filter(|line| line.worker == *name && line.process.is_alive())
            .map(|line| line.process)
            .collect()
    }

    /// No partition has two commands, and tokens never fell.
    pub(crate) fn check(&self) {
        let mut seen = BTreeSet::new();
        for (partition, ..) in self.running() {
            assert!(seen.insert(partition.clone()), "{partition} runs twice");
        }
        let mut tokens = std::collections::BTreeMap::new();
        for line in self.lines() {
            let last = tokens.insert(line.partition.clone(), line.token);
            assert!(last.is_none_or(|last| last <= line.token), "{line:?}");
            assert_eq!(line.arguments, format!("{} {}", line.partition, line.token));
        }
    }

    fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(Line::parse).collect()
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.agents[at].child.kill().unwrap();
        self.agents[at].child.wait().unwrap();
    }

    /// Asks an agent to end, and waits until it has.
    pub(crate) async fn terminate(&mut self, at: usize) -> ExitStatus {
        self.signal(at, Signal::TERM);
        let child = &mut self.agents[at].child;
        until_some(SOON, "the agent ends", async || child.try_wait().unwrap()).await
    }

    pub(crate) fn hang_up(&self, at: usize) {
        self.signal(at, Signal::HUP);
    }

    /// How many commands an agent has started so far.
    pub(crate) fn starts_of(&self, at: usize) -> usize {
        let name = &self.agents[at].name;
        let lines = self.lines().into_iter();
        lines.filter(|line| line.worker == *name).count()
    }

    /// The partitions whose commands were started, once for each start.
    pub(crate) fn started(&self) -> Vec<String> {
        self.lines()
            .into_iter()
            .map(|line| line.partition)
            .collect()
    }

    /// Whether an agent stands still.
    pub(crate) fn is_stopped(&self, at: usize) -> bool {
        let stat = format!("/proc/{}/stat", self.agents[at].child.id());
        std::fs::read_to_string(stat).is_ok_and(|stat| stat.contains(") T "))
    }

    pub(crate) fn signal(&self, at: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.agents[at].child), signal).expect("it is our child");
    }

    /// What an agent said on stderr.
    pub(crate) fn told(&self, at: usize) -> String {
        self.agents[at].stderr.text()
    }

    /// What it printed on stdout.
    pub(crate) fn printed(&self, at: usize) -> String {
        self.agents[at].stdout.text()
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            let _gone = agent.child.kill();
            let _gone = agent.child.wait();
        }
    }
}

/// What a command wrote down.
#[derive(Debug)]
struct Line {
    partition: String,
    token: i64,
    worker: String,
    process: ProcessId,
    arguments: String,
}

impl Line {
    fn parse(text: &str) -> Self {
        let parts: Vec<&str> = text.splitn(6, ' ').collect();
        let [partition, token, worker, id, started, arguments] = parts[..] else {
            panic!("{text:?}");
        };
        Self {
            partition: partition.to_owned(),
            token: token.parse().unwrap(),
            worker: worker.to_owned(),
            process: format!("{id} {started}").parse().unwrap(),
            arguments: arguments.to_owned(),
        }
    }
}

pub(crate) fn kill(process: ProcessId) {
    let pid = Pid::from_raw(process.id.cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).expect("a command of ours runs");
}
