//! Messages that cannot be handled, put aside with what is known of them.

use async_nats::{HeaderMap, HeaderValue};
use divvy_core::Partition;

use super::message::Message;

/// Longest reason that is kept, in characters.
const REASON_CHARS_MAX: usize = 1_000;
/// What the names of headers begin with that tell servers what to do: they
/// were for the message's own stream.
const SERVERS_HEADERS: &str = "nats-";

/// A message for the stream of dead letters.
#[derive(Debug)]
pub(super) struct DeadLetter {
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) payload: Vec<u8>,
}

/// Where a dead letter comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) stream: &'a str,
    /// Who gave it up, too: others may read the same stream.
    pub(super) consumer: &'a str,
    pub(super) partition: &'a Partition,
}

impl DeadLetter {
    /// Of a message. Where the server takes at most `bytes_max`, a large one
    /// goes without what is known of it, rather than not at all.
    pub(super) fn new(
        prefix: &str,
        origin: &Origin<'_>,
        message: &Message,
        why: &str,
        bytes_max: usize,
    ) -> Self {
        let stream = origin.stream;
        let subject = format!("{prefix}.{stream}.{}", message.subject());
        let mut headers = own_headers(message);
        let payload = message.payload().to_vec();
        let known = knowledge(origin, message, why);
        let size = |headers: &HeaderMap| headers_bytes(headers) + payload.len();
        let mut all = headers.clone();
        for (name, value) in &known {
            all.insert(*name, value.as_str());
        }
        if size(&all) <= bytes_max {
            headers = all;
        }
        Self {
            subject,
            headers,
            payload,
        }
    }
}

/// The message's headers, without those that a server acts upon.
fn own_headers(message: &Message) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, values) in message.headers().into_iter().flat_map(HeaderMap::iter) {
        if !AsRef::<str>::as_ref(name)
            .to_ascii_lowercase()
            .starts_with(SERVERS_HEADERS)
        {
            for value in values {
                kept.append(name.clone(), value.clone());
            }
        }
    }
    kept
}

fn knowledge(origin: &Origin<'_>, message: &Message, why: &str) -> [(&'static str, String); 7] {
    let Origin {
        stream,
        consumer,
        partition,
    } = origin;
    let (sequence, stored) = (message.sequence(), message.position().stored);
    let reason = why.chars().map(|c| if c.is_control() { ' ' } else { c });
    [
        // A server that has one already does not store it again. A stream that
        // was made anew has other messages under the same sequences.
        (
            "Nats-Msg-Id",
            format!("{stream}.{consumer}.{sequence}.{stored}"),
        ),
        ("Divvy-Stream", (*stream).to_owned()),
        ("Divvy-Consumer", (*consumer).to_owned()),
        ("Divvy-Sequence", sequence.to_string()),
        ("Divvy-Partition", partition.to_string()),
        ("Divvy-Deliveries", message.deliveries().to_string()),
        ("Divvy-Reason", reason.take(REASON_CHARS_MAX).collect()),
    ]
}

/// As they are sent: a line each, one before and an empty one after.
fn headers_bytes(headers: &HeaderMap) -> usize {
    const FRAME: usize = "NATS/1.0\r\n\r\n".len();
    const LINE: usize = ": \r\n".len();
    let line = |name: &str, value: &HeaderValue| name.len() + value.as_str().len() + LINE;
    let lines = headers.iter().flat_map(|(name, values)| {
        let name: &str = name.as_ref();
        values.iter().map(move |value| line(name, value))
    });
    FRAME + lines.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Message {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", "one");
        headers.insert("nats-expected-stream", "orders");
        headers.append("Trace", "a");
        headers.append("Trace", "b");
        Message::new(async_nats::Message {
            subject: "work.tool.1.completed".into(),
            reply: Some("$JS.ACK.orders.c.3.17.9.1.0".into()),
            payload: vec![7; bytes].into(),
            headers: Some(headers),
            status: None,
            description: None,
            length: bytes,
        })
        .unwrap()
    }

    fn letter(bytes: usize, bytes_max: usize) -> DeadLetter {
        let partition = "tool:1".parse().unwrap();
        DeadLetter::new(
            "dead",
            &Origin {
                stream: "orders",
                consumer: "divvy@tool=3A1",
                partition: &partition,
            },
            &message(bytes),
            "no\r\nuse",
            bytes_max,
        )
    }

    #[test]
    fn a_dead_letter_says_what_it_was_and_why() {
        let letter = letter(10, 1 << 20);
        assert_eq!(letter.subject, "dead.orders.work.tool.1.completed");
        let header = |name: &str| letter.headers.get(name).map(HeaderValue::as_str);
        assert_eq!(header("Nats-Msg-Id"), Some("orders.divvy@tool=3A1.17.1"));
        assert_eq!(header("Divvy-Consumer"), Some("divvy@tool=3A1"));
        assert_eq!(header("nats-expected-stream"), None);
        assert_eq!(header("Divvy-Partition"), Some("tool:1"));
        assert_eq!(header("Divvy-Deliveries"), Some("3"));
        assert_eq!(header("Divvy-Reason"), Some("no  use"));
        assert_eq!(letter.headers.get_all("Trace").count(), 2);
    }

    #[test]
    fn one_as_large_as_can_be_still_fits() {
        let letter = letter(1000, 1050);
        assert_eq!(letter.payload.len(), 1000);
        assert!(letter.headers.get("Divvy-Reason").is_none());
        assert!(headers_bytes(&letter.headers) + 1000 <= 1050);
    }
}
