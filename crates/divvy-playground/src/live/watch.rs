//! Looks at a live cluster again and again, whatever becomes of its store.

use std::sync::{Arc, Mutex as SyncMutex, PoisonError, Weak};
use std::time::Duration;

use divvy::observer::{Observer, Snapshot};
use divvy::store::StoreError;
use divvy_core::{Considered, MoveEntry};
use tokio::sync::Mutex;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Longest that a look may take before the store counts as gone.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// Longest that somebody waits for an answer of the store.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// What a look gave: the cluster with its log of moves, or why there is
/// nothing to see.
pub(crate) type Look = Result<Box<(Snapshot, Vec<MoveEntry>)>, String>;

/// The newest look that nobody has taken in.
#[derive(Debug, Default)]
pub(crate) struct Window(SyncMutex<Option<Look>>);

impl Window {
    fn put(&self, look: Look) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(look);
    }

    pub(crate) fn take(&self) -> Option<Look> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.take()
    }
}

/// Whoever may ask the store, one after another.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    observer: Arc<Mutex<Observer>>,
}

impl Watch {
    pub(crate) fn new(observer: Observer) -> Self {
        Self {
            observer: Arc::new(Mutex::new(observer)),
        }
    }

    /// Looks so often, for as long as somebody has the window.
    pub(crate) async fn run(self, window: Weak<Window>, every: Duration) {
        let mut looks = interval(every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if window.strong_count() == 0 {
                return;
            }
            let look = match timeout(LOOK_MAX.max(every), self.look()).await {
                Ok(Ok(seen)) => Ok(Box::new(seen)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_elapsed) => Err("the store does not answer".to_owned()),
            };
            if let Some(window) = window.upgrade() {
                window.put(look);
            }
        }
    }

    pub(crate) async fn look(&self) -> Result<(Snapshot, Vec<MoveEntry>), StoreError> {
        let mut observer = self.observer.lock().await;
        let snapshot = observer.look().await?;
        Ok((snapshot, observer.moves().await?))
    }

    /// How workers rank for a partition; nothing if the store does not answer
    /// soon.
    pub(crate) async fn ranking(&self, partition: &str) -> Option<Vec<Considered>> {
        let asked = async { self.observer.lock().await.ranking(partition).await };
        timeout(ANSWER_MAX, asked).await.ok()?.ok()
    }
}
