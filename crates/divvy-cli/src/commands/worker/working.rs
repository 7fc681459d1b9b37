//! What a worker does with partitions: it says so, and runs their commands.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, View, now};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::attended::Grants;
use super::line::micros;
use crate::work::{Doing, Work};

/// Works on partitions.
pub(super) struct Working {
    pub(super) instance: Arc<str>,
    pub(super) tick: Option<Duration>,
    pub(super) lines: mpsc::Sender<Value>,
    pub(super) grants: Arc<Grants>,
    pub(super) doing: Option<Doing>,
    pub(super) under_way: Mutex<BTreeMap<Partition, Arc<Work>>>,
    /// There before anything is assigned.
    pub(super) view: Arc<OnceLock<View>>,
}

#[async_trait]
impl Hooks for Working {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        if let Some(doing) = &self.doing {
            let id = self.view.get().and_then(View::worker_id);
            let id = id.unwrap_or_else(|| Arc::clone(&self.instance));
            let work = Arc::new(doing.begin(&id, partition, grant.clone()));
            // Before it is waited for: a start that takes too long is dropped
            // here, and then has to be stopped.
            let known = Arc::clone(&work);
            self.under_way().insert(partition.clone(), known);
            if let Err(error) = work.start().await {
                self.under_way().remove(partition);
                return Err(error);
            }
        }
        self.grants.add(partition, grant.clone());
        if let Some(tick) = self.tick {
            self.say_worked(partition, grant, tick);
        }
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        let work = self.under_way().remove(partition);
        let stopped = match work {
            Some(work) => work.stop(None).await,
            None => Ok(()),
        };
        self.grants.remove(partition);
        stopped
    }
}

impl Working {
    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Partition, Arc<Work>>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Says so often that it works on a partition, while it may.
    fn say_worked(&self, partition: &Partition, grant: Grant, tick: Duration) {
        let (instance, lines) = (Arc::clone(&self.instance), self.lines.clone());
        let partition = partition.to_string();
        tokio::spawn(async move {
            while !grant.is_revoked() {
                let done = grant.run(async |token| {
                    let line = json!({
                        "at_us": micros(now()),
                        "instance": &*instance,
                        "event": "worked",
                        "partition": partition,
                        "token": token.get().to_string(),
                    });
                    lines.send(line).await.is_ok()
                });
                if !matches!(done.await, Ok(true)) {
                    return;
                }
                tokio::time::sleep(tick).await;
            }
        });
    }
}
