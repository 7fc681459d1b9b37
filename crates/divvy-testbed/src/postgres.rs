//! A PostgreSQL server, asked by Debian's own client.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::Process;
use crate::program::{debian, postgres};
use crate::until::until;

const READY_WITHIN: Duration = Duration::from_secs(30);
/// Whom Debian's packages run it as: it refuses to be root's.
const USER: &str = "postgres";

/// A PostgreSQL server that a test has started, on a socket and with a directory of its own. It
/// ends with this value.
#[derive(Debug)]
pub struct PostgresServer {
    // Before the directory, so that the process has ended when that is removed.
    _process: Process,
    directory: TempDir,
}

impl PostgresServer {
    /// Makes one, starts it, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When the server is missing or does not start.
    pub async fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("divvy-testbed-")
            .tempdir()
            .expect("a temporary directory can be made");
        let (data, log) = (directory.path().join("data"), directory.path().join("log"));
        let owner = owner();
        if let Some((user, group)) = owner {
            let all = fs::Permissions::from_mode(0o755);
            fs::set_permissions(directory.path(), all).expect("our own directory");
            chown(directory.path(), Some(user), Some(group)).expect("root can give files away");
        }
        let mut making = as_user(owner, &postgres("initdb"));
        making.extend(["--auth=trust", "--no-sync", "--username=divvy", "-D"].map(str::to_owned));
        making.push(data.display().to_string());
        let made = Command::new(&making[0]).args(&making[1..]).output();
        let made = made.expect("initdb can be started");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb: {said}");
        let mut serving = as_user(owner, &postgres("postgres"));
        let socket = directory.path().display().to_string();
        let flags = ["-c", "listen_addresses=", "-c", "fsync=off", "-k"];
        serving.extend(flags.map(str::to_owned));
        serving.extend([socket, "-D".to_owned(), data.display().to_string()]);
        let process = Process::spawn(Path::new(&serving[0]), &serving[1..], &log);
        let server = Self {
            _process: process.expect("postgres can be started"),
            directory,
        };
        until(READY_WITHIN, "PostgreSQL answers", async || {
            server.run("SELECT 1;").is_ok()
        })
        .await;
        server
    }

    /// Where it is, as `psql` and other clients take it.
    pub fn url(&self) -> String {
        let socket = self.directory.path().display();
        format!("postgresql:///postgres?host={socket}&user=divvy")
    }

    /// What `psql` prints for a script, the number of rows of every statement among it; or what it
    /// says of the first statement that fails.
    pub fn run(&self, script: &str) -> Result<String, String> {
        let mut psql = Command::new(debian("psql"))
            .args(["--no-psqlrc", "--no-align", "--tuples-only"])
            .args(["--set=ON_ERROR_STOP=1", "--dbname", &self.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql can be started");
        let mut input = psql.stdin.take().expect("it is piped");
        // It reads no further where a statement fails.
        let _unread = input.write_all(script.as_bytes());
        drop(input);
        let done = psql.wait_with_output().expect("psql ends");
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }
}

/// Whose the server has to be, where tests are root's: user and group.
fn owner() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("there are users");
    let line = users
        .lines()
        .find(|line| line.split(':').next() == Some(USER));
    let mut numbers = line.into_iter().flat_map(|line| line.split(':').skip(2));
    let mut number = || numbers.next().and_then(|text| text.parse().ok());
    let owner = number().zip(number());
    Some(owner.unwrap_or_else(|| panic!("user {USER} is missing: run scripts/servers")))
}

/// The words that run a program as that user, who does not outlive its parent.
fn as_user(owner: Option<(u32, u32)>, program: &Path) -> Vec<String> {
    let setpriv = debian("setpriv").display().to_string();
    let mut words = Vec::new();
    if let Some((user, group)) = owner {
        words.extend([setpriv.clone(), "--reuid".to_owned(), user.to_string()]);
        words.extend(["--regid".to_owned(), group.to_string()]);
        words.extend(["--clear-groups".to_owned(), "--".to_owned()]);
    }
    // Another user's process forgets the signal that it was to get.
    words.extend([setpriv, "--pdeathsig".to_owned(), "KILL".to_owned()]);
    words.extend(["--".to_owned(), program.display().to_string()]);
    words
}
