//! The messages of one partition that are being handled.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::task::{JoinError, JoinSet};

use super::message::Message;
use super::policy::Ended;
use super::settings::Mode;
use super::work::Work;

type Handled = (Arc<Message>, Ended);

/// In order, the one message is handled by the task that waits for it: another
/// task would cost a change of tasks for each. At once, each has a task.
pub(super) struct InFlight {
    mode: Mode,
    single: Option<Pin<Box<dyn Future<Output = Handled> + Send>>>,
    several: JoinSet<Handled>,
}

impl InFlight {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            single: None,
            several: JoinSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.single.is_some()) + self.several.len()
    }

    /// Begins, and gives what has ended by then.
    pub(super) async fn begin(&mut self, work: Work) -> Option<Handled> {
        if self.mode == Mode::Concurrent {
            self.several.spawn(work.run());
            return None;
        }
        let mut working = Box::pin(work.run());
        match poll_fn(|cx| Poll::Ready(working.as_mut().poll(cx))).await {
            Poll::Ready(handled) => Some(handled),
            Poll::Pending => {
                self.single = Some(working);
                None
            }
        }
    }

    /// What ends next; nothing when nothing runs. Dropped while it waits,
    /// nothing is lost.
    pub(super) async fn ended(&mut self) -> Option<Result<Handled, JoinError>> {
        if let Some(working) = &mut self.single {
            let handled = working.await;
            self.single = None;
            return Some(Ok(handled));
        }
        self.several.join_next().await
    }
}
