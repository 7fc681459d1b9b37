//! One message and its handler.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::handler::{Failure, Handler};
use super::jetstream::JetStream;
use super::message::Message;
use super::policy::Ended;
use crate::manager::{Grant, panic_text};

/// Signs of life within the time that the server waits for one.
const SIGNS: u32 = 3;
/// Says that a message is being handled.
const IN_PROGRESS: &[u8] = b"+WPI";

/// What handling any message of a partition takes.
pub(super) struct Means {
    pub(super) jetstream: Arc<JetStream>,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) grant: Grant,
    pub(super) ack_wait: Duration,
    /// When everything has to have ended, once that is known.
    pub(super) cut: watch::Receiver<Option<Instant>>,
}

/// A message to be handled.
pub(super) struct Work {
    pub(super) means: Arc<Means>,
    pub(super) message: Arc<Message>,
}

impl Work {
    /// Waits for its turn, and handles it; says meanwhile that it is not lost.
    pub(super) async fn run(self) -> (Arc<Message>, Ended) {
        let Self { means, message } = self;
        if !means.grant.is_current() {
            return (message, Ended::Stale);
        }
        let ended = {
            let mut work = pin!(means.handle(&message));
            // Most handlers are quick: then nothing of the rest is needed.
            match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
                Poll::Ready(ended) => ended,
                Poll::Pending => means.accompany(work, &message).await,
            }
        };
        (message, ended)
    }
}

impl Means {
    /// Waits for a handler, as long as it may run.
    async fn accompany(
        &self,
        mut work: Pin<&mut impl Future<Output = Ended>>,
        message: &Message,
    ) -> Ended {
        let mut over = pin!(self.grant.ended());
        let mut cut = pin!(self.cut_off());
        let period = self.ack_wait / SIGNS;
        let mut signs = interval_at(Instant::now() + period, period);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut over => return Ended::Stale,
                ended = &mut work => return ended,
                () = &mut cut => return Ended::Cut,
                _ = signs.tick() => {
                    // Without a connection the server learns nothing; what
                    // comes of that is the same as for a lost message.
                    self.jetstream.say(message, IN_PROGRESS.to_vec()).await;
                }
            }
        }
    }

    async fn handle(&self, message: &Message) -> Ended {
        let mut cut = self.cut.clone();
        let _turn = tokio::select! {
            biased;
            // What has not begun does not begin any more.
            told = cut.wait_for(Option::is_some) => {
                drop(told);
                return Ended::Cut;
            }
            turn = self.permits.acquire() => turn.expect("it is never closed"),
        };
        let grant = &self.grant;
        let called = async { self.handler.handle(message, grant.partition(), grant).await };
        match AssertUnwindSafe(called).catch_unwind().await {
            Ok(Ok(())) => Ended::Done,
            Ok(Err(failure)) => failed(&failure),
            Err(panic) => Ended::Failed(panic_text(panic.as_ref())),
        }
    }

    async fn cut_off(&self) {
        let mut cut = self.cut.clone();
        let told = cut.wait_for(Option::is_some).await.map(|told| *told);
        match told {
            Ok(Some(deadline)) => sleep_until(deadline).await,
            // Whoever could tell is gone, and with it this.
            _ => std::future::pending().await,
        }
    }
}

fn failed(failure: &Failure) -> Ended {
    match failure.is_poison() {
        true => Ended::Poison(failure.to_string()),
        false => Ended::Failed(failure.to_string()),
    }
}
