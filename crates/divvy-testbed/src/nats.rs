//! A NATS server.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::nats_options::{NatsOptions, Surroundings, name};
use crate::port::Port;
use crate::probe::Probe;
use crate::program::NatsVersion;
use crate::server::{Launch, Place, Server};

const STARTS_MAX: usize = 5;
const MONITOR_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A NATS server that a test has started; see [`Server`] for what can be done to it.
#[derive(Debug)]
pub struct NatsServer {
    server: Server,
    monitor: Port,
    /// Where the servers of its cluster connect to, if it is in one.
    _route: Option<Port>,
}

impl NatsServer {
    /// Starts one, and waits until it answers and, if it is to have JetStream, has enabled it.
    ///
    /// # Panics
    ///
    /// When the server is missing or does not start.
    pub async fn start(version: NatsVersion, options: NatsOptions) -> Self {
        for _ in 0..STARTS_MAX {
            let mut new = Self::prepare(version, &options, None, &[]);
            match new.try_start().await {
                Ok(()) => return new,
                Err(_) if new.has_lost_its_port() => {}
                Err(why) => new.fail(&why),
            }
        }
        panic!("{STARTS_MAX} times another process was faster to take the port");
    }

    /// Makes one that is yet to be started.
    pub(crate) fn prepare(
        version: NatsVersion,
        options: &NatsOptions,
        route: Option<Port>,
        routes: &[SocketAddr],
    ) -> Self {
        let place = Place::claim();
        let monitor = Port::claim();
        let text = options.configuration(&Surroundings {
            client: place.port.address(),
            monitor: monitor.address(),
            data: &place.data(),
            route: route.as_ref().map(Port::address),
            routes,
        });
        let file = place.write("nats.conf", &text);
        let launch = Launch {
            program: version.program(),
            arguments: vec!["--config".to_owned(), file],
            scheme: if options.has_tls() { "tls" } else { "nats" },
            probe: Probe::Nats {
                jetstream: options.has_jetstream(),
            },
        };
        Self {
            server: Server::new(place, launch),
            monitor,
            _route: route,
        }
    }

    /// What the server calls itself, to its cluster for example.
    pub fn name(&self) -> String {
        name(self.address())
    }

    /// What the server's monitoring answers on `path`, such as `/jsz` or `/connz`; nothing if it
    /// does not answer.
    pub async fn monitor(&self, path: &str) -> Option<Value> {
        let asked = ask(self.monitor.address(), path);
        let answer = timeout(MONITOR_ANSWERS_WITHIN, asked).await.ok()?.ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }
}

impl Deref for NatsServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for NatsServer {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

/// In HTTP 1.0 the answer is not cut into chunks.
async fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let question = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(question.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
