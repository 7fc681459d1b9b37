//! The least of the two protocols: enough to see what a server really does.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Generous: it is waited only for what does come.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection whose protocol has lines.
pub(crate) struct Wire(BufReader<Box<dyn Stream>>);

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) fn over(stream: impl Stream + 'static) -> Self {
        Self(BufReader::new(Box::new(stream)))
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.try_send(text).await.unwrap();
    }

    pub(crate) async fn try_send(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes()).await?;
        self.0.flush().await
    }

    /// The next line without its end; an empty one at the end of the stream.
    pub(crate) async fn line(&mut self) -> String {
        self.try_line().await.unwrap()
    }

    pub(crate) async fn try_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        timeout(SOON, self.0.read_line(&mut line))
            .await
            .expect("a line should come soon")?;
        Ok(line.trim_end().to_owned())
    }

    /// Sends a NATS client's opening, and returns the answer: `PONG`, or the error.
    pub(crate) async fn nats_opening(&mut self, login: &str) -> String {
        let connect =
            format!("CONNECT {{\"verbose\":false,\"pedantic\":false{login}}}\r\nPING\r\n");
        match self.try_send(&connect).await {
            Ok(()) => self.try_line().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// What a subject answers.
    pub(crate) async fn nats_request(&mut self, subject: &str, payload: &str) -> String {
        let inbox = format!("_INBOX.{}", fastrand::u64(..));
        let length = payload.len();
        self.send(&format!(
            "SUB {inbox} 1\r\nUNSUB 1 1\r\nPUB {subject} {inbox} {length}\r\n{payload}\r\n"
        ))
        .await;
        loop {
            let line = self.line().await;
            match line.split(' ').next() {
                Some("MSG") => return self.line().await,
                Some("PING") => self.send("PONG\r\n").await,
                Some("INFO") => {}
                _ => return line,
            }
        }
    }

    /// What a Redis server answers to one command; of a bulk answer, its text.
    pub(crate) async fn redis(&mut self, command: &str) -> String {
        self.send(&redis_request(command)).await;
        let line = self.line().await;
        match line.strip_prefix('$').map(str::parse::<usize>) {
            Some(Ok(length)) => {
                let mut text = vec![0; length + 2];
                self.0.read_exact(&mut text).await.unwrap();
                String::from_utf8(text).unwrap().trim_end().to_owned()
            }
            _ => line,
        }
    }
}

/// A command as a Redis client sends it.
pub(crate) fn redis_request(command: &str) -> String {
    let words: Vec<_> = command.split(' ').collect();
    let count = format!("*{}\r\n", words.len());
    let word = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    count + &words.iter().map(word).collect::<String>()
}

/// A connection to a NATS server that lets everyone in.
pub(crate) async fn nats(address: SocketAddr) -> Wire {
    let mut wire = Wire::connect(address).await;
    assert!(wire.line().await.starts_with("INFO "));
    assert_eq!(wire.nats_opening("").await, "PONG");
    wire
}
