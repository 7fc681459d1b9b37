//! What the client tells of its connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use async_nats::{ClientError, Event, ServerError};

use super::replies::Replies;
use crate::store::connection::ConnectionReport;

/// Longest reason that is kept, in characters: servers may say anything.
const REASON_CHARS_MAX: usize = 200;

/// Turns the client's events into a report, and ends requests that can get no
/// answer any more.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) report: ConnectionReport,
    pub(crate) replies: Replies,
    /// What was said before the connection ended, most likely its reason.
    trouble: Mutex<Option<String>>,
    was_connected: AtomicBool,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            report: ConnectionReport::connected(),
            replies: Replies::default(),
            trouble: Mutex::default(),
            was_connected: AtomicBool::new(false),
        }
    }

    /// Whether the first connection has been made.
    pub(crate) fn was_connected(&self) -> bool {
        self.was_connected.load(Ordering::Acquire)
    }

    pub(crate) fn see(&self, event: Event) {
        match event {
            Event::Connected => self.connected(),
            Event::Disconnected => {
                let trouble = self.trouble.lock();
                let reason = trouble.unwrap_or_else(PoisonError::into_inner).take();
                self.lost(reason.unwrap_or_else(|| "the connection ended".to_owned()));
            }
            Event::LameDuckMode => self.note("the server is being shut down (lame duck mode)"),
            Event::SlowConsumer(_) => {
                tracing::warn!("messages of the store came faster than they were read");
            }
            Event::ServerError(error) => self.refused(&error),
            Event::ClientError(ClientError::Other(words)) => {
                self.lost(format!("cannot connect again: {}", shortened(&words)));
            }
            Event::ClientError(error) => self.note(&shortened(&error.to_string())),
            // Only we end it for good, when nobody uses the store any more.
            Event::Draining | Event::Closed => {
                self.report.closed();
                self.replies.cut();
            }
        }
    }

    fn connected(&self) {
        let trouble = self.trouble.lock();
        *trouble.unwrap_or_else(PoisonError::into_inner) = None;
        self.replies.connected();
        if self.was_connected.swap(true, Ordering::AcqRel) {
            self.report.regained();
        }
    }

    fn lost(&self, reason: String) {
        self.report.lost(reason);
        self.replies.cut();
    }

    fn refused(&self, error: &ServerError) {
        let words = match error {
            ServerError::Other(words) => shortened(words),
            other => other.to_string(),
        };
        if let Some(subject) = denied(&words, "publish") {
            tracing::warn!(words, "the NATS server forbids a request");
            self.replies.publishing_denied(subject, &words);
        } else if denied(&words, "subscription").is_some() {
            tracing::warn!(words, "the NATS server forbids to listen");
            self.replies.listening_denied(&words);
        } else {
            self.note(&words);
        }
    }

    fn note(&self, words: &str) {
        tracing::warn!(words, "the NATS connection is in trouble");
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = Some(words.to_owned());
    }
}

/// The subject of a server's words such as
/// `Permissions Violation for Publish to "a.b"`.
fn denied<'a>(words: &'a str, what: &str) -> Option<&'a str> {
    let (before, rest) = words.split_once('"')?;
    let (subject, _) = rest.split_once('"')?;
    let before = before.to_ascii_lowercase();
    (before.contains("permissions violation") && before.contains(what)).then_some(subject)
}

/// What a server says, as far as it may be repeated: one that sends back what
/// it was sent sends back the login.
pub(super) fn shortened(words: &str) -> String {
    if words.contains('{') {
        return "words that are not repeated here".to_owned();
    }
    let shown = words.chars().filter(|c| !c.is_control());
    shown.take(REASON_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_forbidden_request_is_found() {
        let words = "Permissions Violation for Publish to \"$KV.b.c.d\"";
        assert_eq!(denied(words, "publish"), Some("$KV.b.c.d"));
        assert_eq!(denied(words, "subscription"), None);
        let words = "Permissions Violation for Subscription to \"_INBOX.>\" using queue \"q\"";
        assert_eq!(denied(words, "subscription"), Some("_INBOX.>"));
        assert_eq!(denied("Stale Connection", "publish"), None);
    }

    #[test]
    fn a_server_that_sends_back_the_login_is_not_repeated() {
        let events = Events::new();
        let echo = r#"CONNECT {"user":"ada","pass":"canary"}"#.to_owned();
        for event in [
            Event::ServerError(ServerError::Other(echo.clone())),
            Event::ClientError(ClientError::Other(echo)),
        ] {
            events.see(event);
            events.see(Event::Disconnected);
            let reason = events.report.subscribe().borrow().lost_by.clone();
            assert!(!reason.unwrap().contains("canary"));
        }
    }

    #[test]
    fn the_first_connection_is_no_news_and_the_reason_of_a_loss_is_kept() {
        let events = Events::new();
        let watched = events.report.subscribe();
        events.see(Event::Connected);
        assert_eq!(watched.borrow().connects, 1);
        events.see(Event::LameDuckMode);
        assert!(watched.borrow().up);
        events.see(Event::Disconnected);
        let now = watched.borrow().clone();
        assert!(!now.up && now.lost_by.unwrap().contains("lame duck"));
        events.see(Event::Connected);
        assert!(watched.borrow().up && watched.borrow().connects == 2);
    }
}
