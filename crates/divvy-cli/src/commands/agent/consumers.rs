//! What is done about partitions, as a controller knows it.

use std::sync::Arc;

use async_trait::async_trait;
use divvy::Partition;
use divvy::controller::{Consumer, ConsumerFactory};
use divvy::lease::StopReason;
use divvy::manager::{Grant, HookError};

use crate::work::{Doing, Work};

/// Does something about each partition.
#[derive(Debug)]
pub(super) struct Consumers {
    pub(super) worker: Arc<str>,
    pub(super) doing: Doing,
}

#[async_trait]
impl ConsumerFactory for Consumers {
    async fn start(
        &self,
        partition: &Partition,
        grant: Grant,
    ) -> Result<Box<dyn Consumer>, HookError> {
        let work = self.doing.begin(&self.worker, partition, grant);
        work.start().await?;
        Ok(Box::new(work))
    }
}

#[async_trait]
impl Consumer for Work {
    async fn stop(self: Box<Self>, reason: StopReason) -> Result<(), HookError> {
        Self::stop(&self, Some(reason.as_str())).await
    }
}
