//! `divvy playground` as a process, and what its page answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longest that an answer takes, even on a machine that does much else.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// A playground on a port of its own, which is killed when this is dropped.
#[derive(Debug)]
pub struct PlaygroundProcess {
    child: Child,
    address: String,
}

impl PlaygroundProcess {
    /// Starts `command`, which is `divvy playground` with all of its flags but the address, and
    /// waits until it says where it is.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn start(command: &mut Command) -> Self {
        command.args(["--listen", "127.0.0.1:0"]);
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.expect("divvy can be started");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        read.expect("it says where it is");
        let address = line.split("http://").nth(1).expect("it says where it is");
        let address = address.split('/').next().expect("an address");
        Self {
            address: address.to_owned(),
            child,
        }
    }

    /// Where it answers.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// When it has ended and was waited for.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is our child");
    }

    /// A connection, for a request that is not like others.
    ///
    /// # Panics
    ///
    /// When it does not listen.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        let bounded = stream.set_read_timeout(Some(ANSWERS_WITHIN));
        bounded.expect("it is above 0");
        stream
    }

    /// The status of its answer, and the body if that is JSON.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = self.connect();
        let (host, length) = (&self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let asked = stream.write_all(request.as_bytes());
        asked.expect("it hears the request");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        read.expect("it answers");
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |parts| parts.1);
        let body = serde_json::from_str(body).unwrap_or_default();
        (status.expect("answers have a status"), body)
    }

    /// What is there, as JSON.
    ///
    /// # Panics
    ///
    /// When it is refused.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Everything that the page shows.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub fn snapshot(&self) -> Value {
        self.get("/api/v1/snapshot")
    }
}

impl Drop for PlaygroundProcess {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
