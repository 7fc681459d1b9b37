//! A service that takes webhooks, and does with them what it is told to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use ring::hmac;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub(crate) const SECRET: &str = "canary-secret-of-the-tests";

/// How requests are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Manner {
    /// With this status, and more in the head.
    Status(u16, &'static str),
    /// Never.
    Hang,
    /// By closing the connection.
    Close,
    /// With a body that does not end.
    Endless,
}

#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) body: Value,
    pub(crate) is_signed: bool,
    pub(crate) path: String,
    pub(crate) host: String,
    pub(crate) authorization: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    manners: Arc<Mutex<BTreeMap<&'static str, Manner>>>,
}

impl Service {
    pub(crate) async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::default(),
            manners: Arc::default(),
        };
        let serving = service.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serving, tls) = (serving.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serving.serve(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serving.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        service
    }

    /// From now on it answers this event so.
    pub(crate) fn answers(&self, event: &'static str, manner: Manner) {
        self.manners.lock().unwrap().insert(event, manner);
    }

    /// What it was sent of this event.
    pub(crate) fn heard(&self, event: &str) -> Vec<Heard> {
        let heard = self.heard.lock().unwrap();
        let of_event = heard.iter().filter(|heard| heard.body["event"] == event);
        of_event.cloned().collect()
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Some((head, body)) = read(&mut stream).await else {
            return;
        };
        let heard = Heard {
            is_signed: is_signed(&head, &body),
            path: head.split(' ').nth(1).unwrap().to_owned(),
            host: header(&head, "host").unwrap().to_owned(),
            authorization: header(&head, "authorization").map(str::to_owned),
            body: serde_json::from_str(&body).unwrap(),
        };
        let event = heard.body["event"].as_str().unwrap().to_owned();
        self.heard.lock().unwrap().push(heard);
        let manner = self.manners.lock().unwrap().get(event.as_str()).cloned();
        let answer = match manner.unwrap_or(Manner::Status(204, "")) {
            Manner::Status(status, more) => {
                format!(
                    "HTTP/1.1 {status} X\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n"
                )
            }
            Manner::Hang => return std::future::pending().await,
            Manner::Close => return,
            Manner::Endless => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        };
        let is_endless = answer.contains("chunked");
        let _gone = stream.write_all(answer.as_bytes()).await;
        while is_endless && stream.write_all(b"4\r\nmore\r\n").await.is_ok() {}
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = header(head, "content-length")?.parse::<usize>().unwrap();
        if body.len() == length {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value)
}

/// What a service has to check: the signature over time and body.
fn is_signed(head: &str, body: &str) -> bool {
    let signature = header(head, "divvy-signature").unwrap_or("");
    let Some((time, digits)) = signature
        .strip_prefix("t=")
        .and_then(|rest| rest.split_once(",v1="))
    else {
        return false;
    };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let is_new = time
        .parse::<u64>()
        .is_ok_and(|time| now.abs_diff(time) < 300);
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let tag: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signed = format!("{time}.{body}");
    is_new && tag.is_some_and(|tag| hmac::verify(&key, signed.as_bytes(), &tag).is_ok())
}
