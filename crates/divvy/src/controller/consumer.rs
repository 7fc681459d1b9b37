//! What an application does with a partition that it owns.

use async_trait::async_trait;
use divvy_core::Partition;
use divvy_core::lease::StopReason;

use crate::manager::{Grant, HookError};

/// Starts consumers.
///
/// It runs on the runtime that the controller was started on, apart from what
/// keeps leases: one that blocks, panics or never returns does not stop
/// renewals. A consumer of a partition is started only after the one before
/// has stopped. Of different partitions `hook_concurrency` start at once, and as
/// many stop: a stop never waits for starts. A start whose lease ends while it
/// waits for its turn is not called; a stop whose lease has ended does not wait.
#[async_trait]
pub trait ConsumerFactory: Send + Sync + 'static {
    /// The partition is this worker's: start working on it, and return. An
    /// error, or a panic, means that nothing runs: the lease is given back, and
    /// this worker tries again after a pause that grows.
    async fn start(
        &self,
        partition: &Partition,
        grant: Grant,
    ) -> Result<Box<dyn Consumer>, HookError>;
}

/// What works on a partition.
///
/// ```
/// use async_trait::async_trait;
/// use divvy::Partition;
/// use divvy::controller::{Consumer, ConsumerFactory};
/// use divvy::lease::StopReason;
/// use divvy::manager::{Grant, HookError};
/// use tokio::task::JoinHandle;
///
/// struct Tasks;
/// struct Task(JoinHandle<()>);
///
/// #[async_trait]
/// impl ConsumerFactory for Tasks {
///     async fn start(&self, _: &Partition, grant: Grant) -> Result<Box<dyn Consumer>, HookError> {
///         Ok(Box::new(Task(tokio::spawn(async move { grant.ended().await }))))
///     }
/// }
///
/// #[async_trait]
/// impl Consumer for Task {
///     async fn stop(self: Box<Self>, _: StopReason) -> Result<(), HookError> {
///         self.0.abort();
///         let _aborted = self.0.await;
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Consumer: Send + 'static {
    /// The partition goes to another worker, or its lease is about to end or
    /// is lost: stop working on it, and return when that is done. After an
    /// error, or a panic, it counts as stopped.
    async fn stop(self: Box<Self>, reason: StopReason) -> Result<(), HookError>;
}

/// Nothing that has to be stopped: for work that looks at its
/// [`Grant`] alone.
#[async_trait]
impl Consumer for () {
    async fn stop(self: Box<Self>, _: StopReason) -> Result<(), HookError> {
        Ok(())
    }
}
