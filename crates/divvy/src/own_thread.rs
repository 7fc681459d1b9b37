//! A thread of a member's own: what an application does to its runtime does
//! not hold up what happens there.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::sync::watch;

/// The system shows so many bytes of a thread's name.
const NAME_SHOWN: usize = 15;

/// A thread that lives until it has said how it ended.
#[derive(Debug)]
pub(crate) struct OwnThread<E> {
    /// Nothing while it has not.
    ended: watch::Receiver<Option<Result<(), E>>>,
    thread: JoinHandle<()>,
}

impl<E: Clone + Send + Sync + 'static> OwnThread<E> {
    /// Starts it for the member of this name.
    pub(crate) fn start(
        member: &str,
        life: impl FnOnce() -> Result<(), E> + Send + 'static,
    ) -> io::Result<Self> {
        let name = format!("divvy-{member}");
        let name = name.chars().filter(|c| !c.is_control()).take(NAME_SHOWN);
        // Whoever listens to the one who starts it listens to the member, too.
        let listener = tracing::dispatcher::get_default(Clone::clone);
        let (ending, ended) = watch::channel(None);
        let thread = Builder::new().name(name.collect()).spawn(move || {
            let outcome = tracing::dispatcher::with_default(&listener, life);
            ending.send_replace(Some(outcome));
        })?;
        Ok(Self { ended, thread })
    }

    /// Waits for its end. Nothing if it ended without a word.
    pub(crate) async fn ended(mut self) -> Option<Result<(), E>> {
        let ended = self.ended.wait_for(Option::is_some).await;
        let outcome = ended.ok().and_then(|outcome| outcome.clone());
        // It has said its last word: this takes no time.
        let _panicked = self.thread.join();
        outcome
    }
}
