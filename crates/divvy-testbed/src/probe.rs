//! Asking a server whether it is ready, in a few lines of its own protocol.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

const ANSWER_MAX: Duration = Duration::from_secs(2);
const LINE_MAX: u64 = 64 * 1024;

/// How a kind of server is asked.
#[derive(Clone, Debug)]
pub(crate) enum Probe {
    /// A NATS server greets with a line about itself, even if it then wants TLS.
    Nats { jetstream: bool },
    /// A Redis server answers on its Unix socket, even if it wants TLS on its port.
    Redis { socket: PathBuf },
}

impl Probe {
    /// The server's version, or why it isn't ready.
    pub(crate) async fn ask(&self, address: SocketAddr, log: &Path) -> Result<String, String> {
        let answer = async {
            match self {
                Self::Nats { jetstream } => ask_nats(address, *jetstream).await,
                Self::Redis { socket } => ask_redis(address, socket, log).await,
            }
        };
        let answered = timeout(ANSWER_MAX, answer).await;
        answered.unwrap_or_else(|_| Err(format!("no answer for {ANSWER_MAX:?}")))
    }
}

async fn ask_nats(address: SocketAddr, jetstream: bool) -> Result<String, String> {
    let stream = TcpStream::connect(address).await.map_err(text)?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(LINE_MAX));
    reader.read_line(&mut line).await.map_err(text)?;
    let about = line.strip_prefix("INFO ").ok_or("greets with no INFO")?;
    let about: Value = serde_json::from_str(about).map_err(text)?;
    if jetstream && about["jetstream"] != Value::Bool(true) {
        return Err("JetStream is not enabled".to_owned());
    }
    let version = about["version"].as_str().ok_or("INFO has no version")?;
    Ok(version.to_owned())
}

async fn ask_redis(address: SocketAddr, socket: &Path, log: &Path) -> Result<String, String> {
    TcpStream::connect(address).await.map_err(text)?;
    let mut stream = UnixStream::connect(socket).await.map_err(text)?;
    stream.write_all(b"PING\r\n").await.map_err(text)?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(LINE_MAX));
    reader.read_line(&mut line).await.map_err(text)?;
    let ready = ["+PONG", "-NOAUTH", "-NOPERM"];
    if !ready.iter().any(|answer| line.starts_with(answer)) {
        return Err(format!("answers {line:?}"));
    }
    // Its log says it even when its access rules keep us from asking.
    let log = std::fs::read_to_string(log).map_err(text)?;
    let (_, version) = log.rsplit_once(" version=").ok_or("logs no version")?;
    let end = version.find(',').unwrap_or(version.len());
    Ok(version[..end].to_owned())
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
