//! JetStream's requests and answers, as far as they are used.
//!
//! They are asked directly, not through the client's own layer: that has a
//! timeout of its own, reads from replicas, and hides error codes.

use async_nats::{HeaderMap, HeaderValue, Message};
use data_encoding::BASE64;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::fault::{ApiError, Fault, code};
use super::link::Link;

const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
const OPERATION: &str = "KV-Operation";
/// Where the server itself says that a value is gone.
const MARKER_REASON: &str = "Nats-Marker-Reason";

/// A stream as the server describes it.
#[derive(Debug, Deserialize)]
pub(super) struct StreamInfo {
    pub(super) config: StreamConfig,
    /// When it was made: another one is another stream.
    pub(super) created: String,
    pub(super) cluster: Option<StreamPlace>,
    /// When the server answered.
    pub(super) ts: Option<String>,
}

/// Where a stream is.
#[derive(Debug, Deserialize)]
pub(super) struct StreamPlace {
    /// The name of the server that leads it, or that has it alone.
    pub(super) leader: Option<String>,
}

/// The settings of a stream that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamConfig {
    pub(super) subjects: Vec<String>,
    pub(super) retention: String,
    pub(super) storage: String,
    pub(super) discard: String,
    pub(super) num_replicas: u64,
    pub(super) max_msgs_per_subject: i64,
    /// In nanoseconds.
    pub(super) max_age: i64,
    pub(super) max_msg_size: i64,
    pub(super) allow_direct: bool,
    pub(super) discard_new_per_subject: bool,
    pub(super) no_ack: bool,
    pub(super) sealed: bool,
    pub(super) allow_msg_counter: bool,
    pub(super) persist_mode: Option<String>,
    pub(super) mirror: Option<IgnoredAny>,
    pub(super) sources: Option<Vec<IgnoredAny>>,
    pub(super) subject_transform: Option<IgnoredAny>,
}

/// A message of a stream: a key's value, or the marker that it has none.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) sequence: u64,
    pub(super) is_marker: bool,
    pub(super) value: Vec<u8>,
}

/// What is published under a condition.
#[derive(Debug, Clone, Copy)]
pub(super) enum Written<'a> {
    Value(&'a [u8]),
    /// Watchers see it, and readers take it for nothing.
    Marker,
}

/// Asks JetStream for something. An error in the answer is a [`Fault::Api`].
pub(crate) async fn call<T: DeserializeOwned>(
    link: &Link,
    deadline: Instant,
    subject: &str,
    body: &impl Serialize,
) -> Result<T, Fault> {
    let body = serde_json::to_vec(body).expect("requests are plain JSON");
    let answer = link
        .request(deadline, subject, HeaderMap::new(), body)
        .await?;
    parsed(&answer)
}

/// Publishes to `subject` if `sequence` is that of its last message, 0 being
/// none, and gives the new message's sequence. There is no other way to write.
pub(super) async fn publish_if(
    link: &Link,
    deadline: Instant,
    subject: &str,
    sequence: u64,
    written: Written<'_>,
) -> Result<u64, Fault> {
    #[derive(Deserialize)]
    struct Ack {
        seq: u64,
    }
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED_SEQUENCE, HeaderValue::from(sequence));
    let payload = match written {
        Written::Value(value) => value.to_vec(),
        Written::Marker => {
            headers.insert(OPERATION, "DEL");
            Vec::new()
        }
    };
    let answer = link.request(deadline, subject, headers, payload).await?;
    let ack: Ack = parsed(&answer)?;
    match ack.seq {
        0 => Err(Fault::Garbled("an acknowledgement without a sequence")),
        sequence => Ok(sequence),
    }
}

/// The last message of a subject, read from the stream's leader.
pub(super) async fn last_message(
    link: &Link,
    deadline: Instant,
    stream: &str,
    subject: &str,
) -> Result<Option<Stored>, Fault> {
    #[derive(Deserialize)]
    struct Answer {
        message: Raw,
    }
    #[derive(Deserialize)]
    struct Raw {
        seq: u64,
        #[serde(default)]
        hdrs: String,
        #[serde(default)]
        data: String,
    }
    let asked = json!({ "last_by_subj": subject });
    let api = format!("$JS.API.STREAM.MSG.GET.{stream}");
    let raw = match call::<Answer>(link, deadline, &api, &asked).await {
        Ok(answer) => answer.message,
        Err(fault) if fault.is_api(code::NO_MESSAGE) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let decoded = |text: String| {
        let bytes = BASE64.decode(text.as_bytes());
        bytes.map_err(|_error| Fault::Garbled("a message that is not base64"))
    };
    let headers = decoded(raw.hdrs)?;
    Ok(Some(Stored {
        sequence: raw.seq,
        is_marker: is_marker_text(&String::from_utf8_lossy(&headers)),
        value: decoded(raw.data)?,
    }))
}

/// Whether a message says that its key has no value.
pub(super) fn is_marker(headers: Option<&HeaderMap>) -> bool {
    headers.is_some_and(|headers| {
        let operation = headers.get(OPERATION);
        headers.get(MARKER_REASON).is_some()
            || operation.is_some_and(|operation| ends_value(operation.as_str()))
    })
}

fn is_marker_text(headers: &str) -> bool {
    let lines = headers.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, value)| (name.trim(), value.trim()))
        .any(|(name, value)| name == MARKER_REASON || (name == OPERATION && ends_value(value)))
}

fn ends_value(operation: &str) -> bool {
    matches!(operation, "DEL" | "PURGE")
}

pub(crate) fn parsed<T: DeserializeOwned>(answer: &Message) -> Result<T, Fault> {
    #[derive(Deserialize)]
    struct Failed {
        error: Option<ApiError>,
    }
    let failed: Failed = serde_json::from_slice(&answer.payload)
        .map_err(|_error| Fault::Garbled("an answer that is not JSON"))?;
    if let Some(error) = failed.error {
        return Err(Fault::Api(error));
    }
    serde_json::from_slice(&answer.payload)
        .map_err(|_error| Fault::Garbled("an answer without what was asked for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_told_from_values_by_their_headers() {
        for (headers, is_marker) in [
            ("NATS/1.0\r\nKV-Operation: DEL\r\n\r\n", true),
            (
                "NATS/1.0\r\nKV-Operation:PURGE\r\nNats-Rollup: sub\r\n\r\n",
                true,
            ),
            ("NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n", true),
            ("NATS/1.0\r\nKV-Operation: PUT\r\n\r\n", false),
            ("NATS/1.0\r\nX: KV-Operation: DEL\r\n\r\n", false),
            ("", false),
        ] {
            assert_eq!(is_marker_text(headers), is_marker, "{headers}");
        }
    }
}
