//! What a member does with a partition: nothing but say so, late or not at all
//! where it was told to.

use std::time::Duration;

use async_trait::async_trait;
use divvy::controller::{Consumer, ConsumerFactory};
use divvy::lease::StopReason;
use divvy::manager::{Grant, HookError, Hooks};
use divvy_core::Partition;
use tokio::time::sleep;

use super::line::Said;
use super::mouth::{Mouth, span};
use super::{Habits, number_of};

/// How long slow hooks take: less than any preset lets them.
const SLOW: Duration = Duration::from_millis(1500);

#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) habits: Habits,
    pub(super) mouth: Mouth,
}

impl Work {
    /// Starts; what is dropped before it has begun has `failed`, if a stop does
    /// not follow.
    async fn begin(&self, partition: u32, grant: &Grant, failed: bool) -> Result<(), HookError> {
        let (token, left) = (grant.token().get(), grant.left().unwrap_or_default());
        self.mouth.say_now(|at| Said::Starting {
            at,
            partition,
            token,
            until: at.saturating_add(span(left)),
        });
        let mut start = Start {
            mouth: &self.mouth,
            partition,
            failed,
        };
        self.dawdle().await;
        start.failed = self.habits.now().broken;
        match start.failed {
            true => Err("its hooks are broken".into()),
            false => Ok(()),
        }
    }

    async fn end(&self, partition: u32) {
        self.mouth.say_now(|at| Said::Stopping { at, partition });
        self.dawdle().await;
        self.mouth.say_now(|at| Said::Stopped { at, partition });
    }

    async fn dawdle(&self) {
        let is_slow = self.habits.now().slow;
        if is_slow {
            sleep(SLOW).await;
        }
    }
}

/// A start that has not returned; its end is said whatever becomes of it.
struct Start<'a> {
    mouth: &'a Mouth,
    partition: u32,
    failed: bool,
}

impl Drop for Start<'_> {
    fn drop(&mut self) {
        let (partition, failed) = (self.partition, self.failed);
        self.mouth.say_now(|at| Said::Started {
            at,
            partition,
            failed,
        });
    }
}

#[async_trait]
impl Hooks for Work {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        // One that is dropped is stopped.
        self.begin(number_of(partition.as_str()), &grant, false)
            .await
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        self.end(number_of(partition.as_str())).await;
        Ok(())
    }
}

#[async_trait]
impl ConsumerFactory for Work {
    async fn start(
        &self,
        partition: &Partition,
        grant: Grant,
    ) -> Result<Box<dyn Consumer>, HookError> {
        let number = number_of(partition.as_str());
        // One that is dropped has no consumer that could be stopped.
        self.begin(number, &grant, true).await?;
        Ok(Box::new(Working {
            work: self.clone(),
            number,
        }))
    }
}

/// A partition that is worked on.
struct Working {
    work: Work,
    number: u32,
}

#[async_trait]
impl Consumer for Working {
    async fn stop(self: Box<Self>, _: StopReason) -> Result<(), HookError> {
        self.work.end(self.number).await;
        Ok(())
    }
}
