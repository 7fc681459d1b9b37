//! Asking the source of partitions, for as long as that may take.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::Partitions;
use divvy_core::leader::Event;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::calls::{Aborting, panic_text};
use super::driver::Input;
use super::error::ManagerError;
use super::retry::Retry;
use super::source::PartitionSource;

/// Changes that a source tells of are followed so often at most, whatever it
/// says.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);
/// So many in a row at that pace are told, once.
const CHANGES_MAX: u32 = 3;

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
            let (mut earliest, mut in_a_row) = (Instant::now(), 0);
            loop {
                let source = Arc::clone(&source);
                let changed = Aborting(runtime.spawn(async move { source.changed().await }));
                // Listened to meanwhile: what changes now must not be missed.
                sleep_until(earliest).await;
                in_a_row = if changed.0.is_finished() {
                    in_a_row + 1
                } else {
                    0
                };
                let told = match changed.await {
                    Ok(()) if in_a_row == CHANGES_MAX => Some(
                        "the source of partitions does not wait for changes: once a second is \
                         enough for it"
                            .to_owned(),
                    ),
                    Ok(()) => None,
                    Err(error) if error.is_panic() => {
                        let why = panic_text(error.into_panic().as_ref());
                        let text =
                            format!("changes of partitions are not followed any more: {why}");
                        let _gone = driver.send(problem(text)).await;
                        // It is still asked for its list.
                        return;
                    }
                    Err(_cancelled) => return,
                };
                if let Some(text) = told {
                    let _gone = driver.send(problem(text)).await;
                }
                if driver.send(Input::SourceChanged).await.is_err() {
                    return;
                }
                earliest = Instant::now() + CHANGE_INTERVAL;
            }
        }
    }

    /// The answer is there.
    pub(super) fn answered(&mut self) {
        self.is_asked = false;
    }
}

fn problem(text: String) -> Input {
    Input::Problem(ManagerError::Problem(text.into()))
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
