//! A connection, and whether its client is waited for: only then it may lose
//! its place to another.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// A whole request was read, and its answer is not sent yet.
    is_asked: AtomicBool,
    ends: Notify,
}

impl Line {
    /// All of a request is here.
    pub(crate) fn asked(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    fn answered(&self) {
        self.is_asked.store(false, Ordering::Relaxed);
    }

    /// Waits until its place is needed.
    pub(crate) async fn is_given_up(&self) {
        self.ends.notified().await;
    }
}

/// All connections, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    open: Mutex<BTreeMap<u64, Arc<Line>>>,
}

impl Lines {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Line>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has come, as the one with this number.
    pub(crate) fn add(&self, number: u64) -> Arc<Line> {
        let line = Arc::new(Line::default());
        self.open().insert(number, Arc::clone(&line));
        line
    }

    /// It has gone.
    pub(crate) fn remove(&self, number: u64) {
        self.open().remove(&number);
    }

    /// Gives up the one that has waited longest for its client, if there is
    /// one.
    pub(crate) fn give_up_one(&self) {
        let mut open = self.open();
        let waiting = |line: &Arc<Line>| !line.is_asked.load(Ordering::Relaxed);
        let oldest = open.iter().find(|(_, line)| waiting(line));
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(line) = open.remove(&number)
        {
            line.ends.notify_one();
        }
    }
}

/// The body of an answer, which is not over before it is sent.
pub(crate) struct Answer {
    body: Body,
    line: Arc<Line>,
}

impl Answer {
    pub(crate) const fn new(body: Body, line: Arc<Line>) -> Self {
        Self { body, line }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.line.answered();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_one_that_waits_longest_is_given_up_and_none_that_has_asked() {
        let lines = Lines::default();
        let all: Vec<_> = (0..3).map(|number| lines.add(number)).collect();
        all[0].asked();
        lines.give_up_one();
        all[1].is_given_up().await;
        all[2].asked();
        lines.give_up_one();
        assert_eq!(lines.open().len(), 2);
        drop(Answer::new(Body::empty(), Arc::clone(&all[2])));
        lines.give_up_one();
        all[2].is_given_up().await;
    }
}
