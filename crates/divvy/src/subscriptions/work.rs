//! One message and its handler.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
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

/// Everything that handling a message takes.
pub(super) struct Work {
    pub(super) jetstream: Arc<JetStream>,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) grant: Grant,
    pub(super) message: Arc<Message>,
    pub(super) ack_wait: Duration,
    /// When it has to have ended, once that is known.
    pub(super) cut: watch::Receiver<Option<Instant>>,
}

impl Work {
    /// Waits for its turn, and handles it; says meanwhile that it is not lost.
    pub(super) async fn run(self) -> (Arc<Message>, Ended) {
        if !self.grant.is_current() {
            return (self.message, Ended::Stale);
        }
        let mut work = pin!(self.handle());
        // Most handlers are quick: then nothing of the below is needed.
        if let Poll::Ready(ended) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
            return (Arc::clone(&self.message), ended);
        }
        let mut over = pin!(self.grant.ended());
        let mut cut = pin!(self.cut_off());
        let period = self.ack_wait / SIGNS;
        let mut signs = interval_at(Instant::now() + period, period);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            tokio::select! {
                biased;
                () = &mut over => break Ended::Stale,
                ended = &mut work => break ended,
                () = &mut cut => break Ended::Cut,
                _ = signs.tick() => {
                    let sign = self.jetstream.link.publish(self.message.reply(), IN_PROGRESS.to_vec());
                    // Without a connection the server learns nothing; what
                    // comes of that is the same as for a lost message.
                    let _unsent = sign.await;
                }
            }
        };
        (Arc::clone(&self.message), ended)
    }

    async fn handle(&self) -> Ended {
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
        let (message, grant) = (&*self.message, &self.grant);
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
