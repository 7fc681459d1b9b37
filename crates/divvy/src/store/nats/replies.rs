//! Requests that wait for their answers.
//!
//! The client's own requests leave something behind when nobody waits any
//! more, and don't notice when an answer can no longer come. These do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_nats::{Message, StatusCode};
use tokio::sync::oneshot;

use super::fault::Fault;

type Answer = Result<Message, Fault>;

/// The requests of one connection that are under way.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    state: Mutex<State>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<u64, Waiting>,
    /// Why no answer can come at all.
    deaf: Option<String>,
}

#[derive(Debug)]
struct Waiting {
    subject: String,
    sender: oneshot::Sender<Answer>,
}

/// One request. Dropped, nothing of it remains.
#[derive(Debug)]
pub(crate) struct Pending<'a> {
    replies: &'a Replies,
    token: u64,
    receiver: oneshot::Receiver<Answer>,
}

impl Replies {
    /// Begins to wait for the answer to a request on `subject`.
    pub(crate) fn expect(&self, subject: &str) -> Result<Pending<'_>, Fault> {
        let (sender, receiver) = oneshot::channel();
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        if let Some(why) = &state.deaf {
            return Err(Fault::Denied(why.clone()));
        }
        let waiting = Waiting {
            subject: subject.to_owned(),
            sender,
        };
        state.waiting.insert(token, waiting);
        Ok(Pending {
            replies: self,
            token,
            receiver,
        })
    }

    /// An answer came, for whoever still waits.
    pub(crate) fn answered(&self, message: Message) {
        let token = message.subject.rsplit('.').next();
        let Some(token) = token.and_then(|token| token.parse().ok()) else {
            return;
        };
        let Some(waiting) = self.state().waiting.remove(&token) else {
            return;
        };
        let answer = match message.status {
            Some(StatusCode::NO_RESPONDERS) => Err(Fault::NoResponders),
            _ => Ok(message),
        };
        // Nobody may be waiting any more.
        let _late = waiting.sender.send(answer);
    }

    /// The connection is lost: no answer will come to what is under way.
    pub(crate) fn cut(&self) {
        for waiting in std::mem::take(&mut self.state().waiting).into_values() {
            let _late = waiting.sender.send(Err(Fault::Cut));
        }
    }

    /// The server forbids to publish to `subject`: it answers nothing there.
    pub(crate) fn publishing_denied(&self, subject: &str, words: &str) {
        let mut state = self.state();
        let is_denied = |_: &u64, waiting: &mut Waiting| waiting.subject == subject;
        for waiting in state.waiting.extract_if(.., is_denied) {
            let _late = waiting.1.sender.send(Err(Fault::Denied(words.to_owned())));
        }
    }

    /// The server forbids to listen for answers.
    pub(crate) fn listening_denied(&self, words: &str) {
        let mut state = self.state();
        state.deaf = Some(words.to_owned());
        for waiting in std::mem::take(&mut state.waiting).into_values() {
            let _late = waiting.sender.send(Err(Fault::Denied(words.to_owned())));
        }
    }

    /// Another connection: what the last one forbade may be allowed now.
    pub(crate) fn connected(&self) {
        self.state().deaf = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending<'_> {
    /// What the subject of the answer ends with.
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// Waits for the answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        // Without a sender, the connection is being torn down.
        (&mut self.receiver).await.unwrap_or(Err(Fault::Cut))
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.replies.state().waiting.remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str, status: Option<StatusCode>) -> Message {
        Message {
            subject: subject.into(),
            reply: None,
            payload: Vec::new().into(),
            headers: None,
            status,
            description: None,
            length: 0,
        }
    }

    #[tokio::test]
    async fn every_request_gets_its_own_answer_and_leaves_nothing() {
        let replies = Replies::default();
        let mut first = replies.expect("a").unwrap();
        let mut second = replies.expect("a").unwrap();
        let answer = |pending: &Pending<'_>| format!("_INBOX.x.r.{}", pending.token());
        let no_responders = Some(StatusCode::NO_RESPONDERS);
        replies.answered(message(&answer(&second), no_responders));
        replies.answered(message(&answer(&first), None));
        assert_eq!(*first.answer().await.unwrap().subject, *answer(&first));
        assert!(matches!(second.answer().await, Err(Fault::NoResponders)));
        // Late, repeated and foreign answers are nobody's.
        replies.answered(message(&answer(&first), None));
        replies.answered(message("_INBOX.x.r.nobody", None));
        let given_up = replies.expect("a").unwrap();
        assert_eq!(replies.state().waiting.len(), 1);
        drop(given_up);
        assert!(replies.state().waiting.is_empty());
    }

    #[tokio::test]
    async fn what_can_get_no_answer_ends_at_once() {
        let replies = Replies::default();
        let (mut denied, mut other) = (replies.expect("a").unwrap(), replies.expect("b").unwrap());
        replies.publishing_denied("a", "not a");
        assert!(matches!(denied.answer().await, Err(Fault::Denied(_))));
        replies.cut();
        assert!(matches!(other.answer().await, Err(Fault::Cut)));
        let mut third = replies.expect("c").unwrap();
        replies.listening_denied("deaf");
        assert!(matches!(third.answer().await, Err(Fault::Denied(_))));
        assert!(matches!(replies.expect("d"), Err(Fault::Denied(_))));
        replies.connected();
        assert!(replies.expect("d").is_ok());
    }
}
