//! A client that sends what it is told to, byte for byte.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Asks in the ordinary way.
pub(crate) async fn ask(address: SocketAddr, method: &str, path: &str) -> Answer {
    ask_with(address, method, path, &[]).await
}

/// Asks with more lines in the head.
pub(crate) async fn ask_with(
    address: SocketAddr,
    method: &str,
    path: &str,
    lines: &[&str],
) -> Answer {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !lines.iter().any(|line| line.starts_with("Host:")) {
        text += &format!("Host: {address}\r\n");
    }
    for line in lines {
        text += &format!("{line}\r\n");
    }
    send(address, format!("{text}\r\n").as_bytes()).await
}

/// Sends bytes, and reads until the other side has said all; status 0 where it
/// said nothing.
pub(crate) async fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // Who is refused early may not be read to the end.
    let _cut = stream.write_all(bytes).await;
    read(&mut stream).await
}

pub(crate) async fn read(stream: &mut TcpStream) -> Answer {
    let mut text = Vec::new();
    let _cut = stream.read_to_end(&mut text).await;
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}
