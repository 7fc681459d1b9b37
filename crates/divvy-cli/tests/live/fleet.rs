//! A live cluster of processes, and commands that look at it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use divvy::store::{Key, Outcome, StoreSettings, open_key_value};
pub(crate) use divvy_testbed::ClusterKind as Kind;
use divvy_testbed::{StoreServer, at_once, until};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything takes, even on a machine that does much else.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Leases short enough to wait for, and long enough to be kept on a busy
/// machine.
const AGENT_CONFIG: &str = "
preset: fast
heartbeat_ttl: 2s
lease_ttl: 2s
renew_interval: 300ms
heartbeat_interval: 300ms
workloads:
  demo: 8
";
const WORKER_CONFIG: &str = "
preset: fast
heartbeat_ttl: 2s
heartbeat_interval: 300ms
leader_lease: 1s
startup_timeout: 60s
strategy:
  name: balanced
";

/// Runs a test on these stores, on all at once.
pub(crate) fn on(kinds: &[Kind], scenario: impl AsyncFn(Fleet) + Copy + Send + 'static) {
    at_once(kinds, async move |kind| {
        scenario(Fleet::new(kind).await).await;
    });
}

pub(crate) struct Fleet {
    pub(crate) kind: Kind,
    address: String,
    children: Vec<Child>,
    directory: TempDir,
    server: StoreServer,
}

/// What a command printed.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Fleet {
    async fn new(kind: Kind) -> Self {
        let directory = TempDir::new().unwrap();
        let server = StoreServer::start(kind).await;
        std::fs::write(directory.path().join("agent.yaml"), AGENT_CONFIG).unwrap();
        std::fs::write(directory.path().join("worker.yaml"), WORKER_CONFIG).unwrap();
        Self {
            kind,
            address: server.address(Path::new("./agents.db")),
            children: Vec::new(),
            directory,
            server,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts a member.
    pub(crate) fn start(&mut self, name: &str) {
        self.start_in("default", name);
    }

    /// Starts a member of another cluster of the same store.
    pub(crate) fn start_in(&mut self, cluster: &str, name: &str) {
        let mut command = self.divvy();
        match self.kind.is_led() {
            false => command
                .args(["agent", "--config", "agent.yaml", "--node", name])
                .args(["--exec", "sleep 1000"]),
            true => command
                .args(["worker", "--config", "worker.yaml", "--instance", name])
                .args(["--partitions", "demo:8"]),
        };
        let child = command
            .args(["--cluster", cluster])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.children.push(child);
    }

    /// What `divvy status` says.
    fn status(&self) -> Value {
        let said = self.run("status --json --no-wait");
        serde_json::from_str(&said.stdout).unwrap_or_default()
    }

    /// The name that a member is known by, once it is.
    pub(crate) fn name_of(&self, member: &str) -> Option<String> {
        let field = if self.kind.is_led() {
            "instance"
        } else {
            "name"
        };
        let status = self.status();
        let mut workers = status["workers"].as_array()?.iter();
        let worker = workers.find(|worker| worker[field] == *member)?;
        worker["name"].as_str().map(str::to_owned)
    }

    pub(crate) fn kill(&mut self, at: usize) {
        let child = &mut self.children[at];
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Writes what nobody can read over a key of leader mode.
    pub(crate) async fn spoil(&self, key: &str) {
        let path = self.directory().join("agents.db");
        let address = self
            .address
            .replace("./agents.db", &path.display().to_string());
        let url = address.parse().unwrap();
        let store = open_key_value(&url, &StoreSettings::default())
            .await
            .unwrap();
        let key = Key::new([key]).unwrap();
        let before = store.get(&key).await.unwrap();
        let expected = before.map(|entry| entry.revision).into();
        let written = store
            .compare_and_set(&key, expected, b"{{{{")
            .await
            .unwrap();
        assert!(matches!(written, Outcome::Done(_)));
    }

    /// Its server ends, as a crash ends it.
    pub(crate) fn server_ends(&mut self) {
        self.server.server().kill();
    }

    /// Its server is there again.
    pub(crate) async fn server_starts_again(&mut self) {
        self.server.server().start_again().await;
    }

    pub(crate) fn divvy(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("divvy"));
        command
            .current_dir(self.directory())
            .env("DIVVY_STORE", &self.address)
            .env("NO_COLOR", "1");
        command
    }

    /// Runs a command on the cluster.
    pub(crate) fn run(&self, line: &str) -> Said {
        let output = self.divvy().args(line.split(' ')).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// What a command printed that did what it should.
    #[track_caller]
    pub(crate) fn done(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(
            (said.code, said.stderr.as_str()),
            (Some(0), ""),
            "{line}\n{}",
            said.stdout
        );
        said.stdout
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.done(line)).unwrap()
    }

    /// How many partitions each of these workers owns, by `divvy status`.
    pub(crate) fn shares(&self, names: &[String]) -> Vec<u64> {
        let status = self.status();
        let workers = status["workers"].as_array().cloned().unwrap_or_default();
        let owned = |name: &String| {
            let worker = workers.iter().find(|worker| worker["name"] == **name);
            worker.and_then(|worker| worker["owned"].as_u64())
        };
        names.iter().map(|name| owned(name).unwrap_or(0)).collect()
    }

    /// Starts members one after another, and waits until all have a share.
    pub(crate) async fn started(&mut self, names: &[&str]) -> Vec<String> {
        let mut known = Vec::new();
        for name in names {
            self.start(name);
            self.until("it has joined", || self.name_of(name).is_some())
                .await;
            known.extend(self.name_of(name));
            self.until("it has a share", || {
                let shares = self.shares(&known);
                shares.iter().sum::<u64>() == 8 && shares.iter().all(|share| *share > 0)
            })
            .await;
        }
        known
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        until(SOON, what, async || holds()).await;
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            let _ended = child.kill();
            let _waited = child.wait();
        }
    }
}
