//! The messages of one partition that are being handled.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tokio::task::{JoinError, JoinSet};

use super::message::Message;
use super::policy::Ended;
use super::settings::Mode;
use super::work::Work;

type Handled = (Arc<Message>, Ended);

/// Each has a task of its own, and goes on whatever its partition waits for. In
/// order, a handler that ends without waiting needs none, and spares a change
/// of tasks.
pub(super) struct InFlight {
    mode: Mode,
    running: JoinSet<Handled>,
}

impl InFlight {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            running: JoinSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// Begins, and gives what has ended by then.
    pub(super) async fn begin(&mut self, work: Work) -> Option<Handled> {
        if self.mode == Mode::Concurrent {
            self.running.spawn(work.run());
            return None;
        }
        let mut working = Box::pin(work.run());
        match poll_fn(|cx| Poll::Ready(working.as_mut().poll(cx))).await {
            Poll::Ready(handled) => Some(handled),
            Poll::Pending => {
                self.running.spawn(working);
                None
            }
        }
    }

    /// What ends next; nothing when nothing runs. Dropped while it waits,
    /// nothing is lost.
    pub(super) async fn ended(&mut self) -> Option<Result<Handled, JoinError>> {
        self.running.join_next().await
    }
}
