//! What a server announces, on a connection of its own.
//!
//! Of its own, because servers cut off a subscriber that has large replies
//! waiting. When the connection was lost and is back, there may be a gap.

use std::sync::Arc;

use ::redis::{PushInfo, PushKind};
use divvy_core::store::StoreError;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::link::{Carried, Link, Timing};
use super::reply;
use crate::store::connection::Connection;

/// What is heard.
pub(super) enum Heard<'a> {
    /// Something was announced on a channel.
    Message {
        channel: &'a [u8],
        payload: &'a [u8],
    },
    /// Announcements may have been missed.
    Gap,
}

type Listener = Arc<dyn Fn(Heard<'_>) + Send + Sync>;

/// A subscription that comes back. Dropping it ends it.
pub(super) struct Subscription {
    state: watch::Receiver<State>,
    timing: Timing,
    task: JoinHandle<()>,
}

#[derive(Clone)]
enum State {
    Starting,
    Listening,
    Failed(StoreError),
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Subscription {
    /// Begins to listen, beside a link to the same server.
    pub(super) fn start(
        link: &Link,
        channels: Vec<String>,
        listener: impl Fn(Heard<'_>) + Send + Sync + 'static,
    ) -> Self {
        let (sender, state) = watch::channel(State::Starting);
        let timing = link.timing();
        let subscriber = Subscriber {
            link: link.clone(),
            timing,
            channels,
            listener: Arc::new(listener),
            state: sender,
            other: link.connection(),
        };
        Self {
            state,
            timing,
            task: tokio::spawn(subscriber.run()),
        }
    }

    /// Waits until everything is heard that is announced from now on, for at
    /// most the operation timeout.
    pub(super) async fn listening(&self) -> Result<(), StoreError> {
        let mut state = self.state.clone();
        let waiting = state.wait_for(|state| matches!(state, State::Listening));
        if let Ok(Ok(_listening)) = timeout(self.timing.operation(), waiting).await {
            return Ok(());
        }
        match &*self.state.borrow() {
            State::Failed(error) => Err(error.clone()),
            _ => Err(StoreError::unavailable(format_args!(
                "no answer to the subscription within {:?}",
                self.timing.operation()
            ))),
        }
    }
}

struct Subscriber {
    link: Link,
    timing: Timing,
    channels: Vec<String>,
    listener: Listener,
    state: watch::Sender<State>,
    /// The link's own connection.
    other: watch::Receiver<Connection>,
}

impl Subscriber {
    async fn run(mut self) {
        let mut backoff = self.timing.backoff();
        let mut first = true;
        loop {
            let connects = self.other.borrow_and_update().connects;
            let error = match self.subscribed().await {
                Ok(mut carried) => {
                    backoff.reset();
                    if !first {
                        (self.listener)(Heard::Gap);
                    }
                    first = false;
                    self.state.send_replace(State::Listening);
                    StoreError::unavailable(self.lost(&mut carried, connects).await)
                }
                Err(error) => error,
            };
            tracing::debug!(%error, "subscription lost");
            self.state.send_replace(State::Failed(error));
            sleep(backoff.delay()).await;
        }
    }

    /// Waits until the connection is lost, or is to another server than the
    /// link's, which was made anew after it had been made `connects` times.
    async fn lost(&mut self, carried: &mut Carried, mut connects: u64) -> String {
        loop {
            let again = async {
                let again = self.other.wait_for(|other| other.connects != connects);
                let again = again.await.map(|other| other.connects).ok();
                match again {
                    Some(connects) => connects,
                    // The link is being torn down, and this with it.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                reason = carried.lost(&self.timing) => return reason,
                again = again => connects = again,
            }
            if self.link.server().run_id != carried.server.run_id {
                return "the address leads to another server".to_owned();
            }
            (self.listener)(Heard::Gap);
        }
    }

    async fn subscribed(&self) -> Result<Carried, StoreError> {
        let listener = Arc::clone(&self.listener);
        let hear = move |push: PushInfo| {
            if push.kind == PushKind::Message
                && let [channel, payload] = push.data.as_slice()
                && let (Some(channel), Some(payload)) =
                    (reply::bytes(channel), reply::bytes(payload))
            {
                listener(Heard::Message { channel, payload });
            }
            Ok::<(), std::convert::Infallible>(())
        };
        let bound = self.timing.connect();
        let mut carried =
            Carried::connect(self.link.endpoint(), bound, Some(Arc::new(hear))).await?;
        let subscribing = carried.connection.subscribe(&self.channels);
        match timeout(self.timing.operation(), subscribing).await {
            Ok(Ok(())) => Ok(carried),
            Ok(Err(error)) if error.code() == Some("NOPERM") => {
                Err(StoreError::unfit(format_args!(
                    "the server's access rules forbid to subscribe to {}, see the templates in \
                     docs/operating.md",
                    self.channels.join(" and ")
                )))
            }
            Ok(Err(error)) => Err(StoreError::unavailable(super::failure::of_loss(&error))),
            Err(_elapsed) => Err(StoreError::unavailable("no answer to the subscription")),
        }
    }
}
