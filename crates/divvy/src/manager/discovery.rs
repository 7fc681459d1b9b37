//! Asking the source of partitions, for as long as that may take.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::Partitions;
use divvy_core::leader::Event;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::calls::{Aborting, panic_text};
use super::driver::Input;
use super::retry::Retry;
use super::source::PartitionSource;

/// Asks a source, one question at a time.
pub(super) struct Discovery {
    pub(super) source: Arc<dyn PartitionSource>,
    pub(super) runtime: Handle,
    pub(super) limit: Duration,
    pub(super) retry: Retry,
    pub(super) is_asked: bool,
}

impl Discovery {
    /// A question, unless one is being asked already.
    pub(super) fn ask(
        &mut self,
        driver: &mpsc::Sender<Input>,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        if std::mem::replace(&mut self.is_asked, true) {
            return None;
        }
        let (source, runtime) = (Arc::clone(&self.source), self.runtime.clone());
        let (limit, retry, driver) = (self.limit, self.retry, driver.clone());
        Some(async move {
            let mut tries = 0;
            let answer = loop {
                match list(&source, &runtime, limit).await {
                    Ok(partitions) => break Ok(partitions),
                    Err(error) if tries == retry.max_retries => break Err(error),
                    Err(error) => {
                        tracing::debug!(%error, "the source failed, trying again");
                        let _gone = driver.send(Input::SourceFailed(error)).await;
                    }
                }
                sleep(retry.delay(tries)).await;
                tries += 1;
            };
            let _gone = driver.send(Input::Event(Event::Partitions(answer))).await;
        })
    }

    /// Tells whenever the source may have others, for ever.
    pub(super) fn follow(
        &self,
        driver: mpsc::Sender<Input>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (source, runtime) = (Arc::clone(&self.source), self.runtime.clone());
        async move {
            loop {
                let source = Arc::clone(&source);
                let changed = Aborting(runtime.spawn(async move { source.changed().await }));
                // A source that fails at this is still asked for its list.
                if changed.await.is_err() || driver.send(Input::SourceChanged).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The answer is there.
    pub(super) fn answered(&mut self) {
        self.is_asked = false;
    }
}

/// Asks once, on the application's runtime: a source may block.
async fn list(
    source: &Arc<dyn PartitionSource>,
    runtime: &Handle,
    limit: Duration,
) -> Result<Partitions, String> {
    let source = Arc::clone(source);
    let mut asked = Aborting(runtime.spawn(async move { source.list_partitions().await }));
    match timeout(limit, &mut asked).await {
        Ok(Ok(Ok(partitions))) => Ok(partitions),
        Ok(Ok(Err(error))) => Err(error.to_string()),
        Ok(Err(error)) if error.is_panic() => Err(panic_text(error.into_panic().as_ref())),
        Ok(Err(_cancelled)) => Err("the runtime has ended".to_owned()),
        Err(_elapsed) => Err(format!("no answer within {limit:?}")),
    }
}
