//! A served playground, and requests to it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use divvy_http::Token;
use divvy_playground::{Playground, Setup, listen};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Longest that a test waits for something.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Bed {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Bed {
    pub(crate) fn new(token: Option<&str>) -> Self {
        let setup = Setup {
            workers: 4,
            partitions: 32,
            ..Setup::default()
        };
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let playground = Playground::open(setup, None).unwrap();
        let token = token.map(|token| Token::new(token.as_bytes()).unwrap());
        runtime.spawn(listen(listener, playground, token));
        Self {
            address,
            runtime: Some(runtime),
        }
    }

    /// Sends a request as it is; gives the status, the head and the body.
    pub(crate) fn raw(&self, request: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A server that refuses early need not read all of it.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.unwrap_or(0), head.to_lowercase(), body.to_owned())
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String, String) {
        let host = match headers.contains("Host:") {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.raw(request.as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = self.ask("GET", path, "", "");
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let headers = "Content-Type: application/json\r\n";
        let (status, _, body) = self.ask("POST", path, headers, body);
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    pub(crate) fn act(&self, action: &Value) -> (u16, Value) {
        self.post("/api/v1/actions", &action.to_string())
    }

    /// Does something that must be possible.
    pub(crate) fn done(&self, action: Value) -> Value {
        let (status, answer) = self.act(&action);
        assert_eq!(status, 200, "{action}: {answer}");
        assert!(answer["done"].is_string(), "{answer}");
        answer
    }

    pub(crate) fn snapshot(&self) -> Value {
        let (status, snapshot) = self.get("/api/v1/snapshot");
        assert_eq!(status, 200);
        snapshot
    }

    /// Lets simulated time pass until it holds.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..300 {
            let snapshot = self.snapshot();
            if holds(&snapshot) {
                return snapshot;
            }
            self.done(json!({"action": "step", "ms": 200}));
        }
        panic!("not within a minute of the world: {what}");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
