//! What an application does when its assignment changes.

use std::error::Error as StdError;
use std::sync::Arc;

use async_trait::async_trait;
use divvy_core::Partition;
use divvy_core::leader::State;

use super::error::ManagerError;
use super::grant::Grant;

/// Why a hook failed, in the application's words.
pub type HookError = Box<dyn StdError + Send + Sync>;

/// What a manager calls. All of it is optional.
///
/// Hooks run on the runtime that the manager was started on, apart from what
/// keeps the lease: one that blocks, panics or never returns does not stop
/// heartbeats. [`Hooks::assigned`] and [`Hooks::revoked`] of one partition
/// alternate and never overlap. Of different partitions `hook_concurrency` start
/// at once, and as many stop: a stop never waits for starts. A start whose lease
/// ends while it waits for its turn is not called; a stop whose lease has ended
/// does not wait. The other four come one at a time and in order.
///
/// A partition counts as stopped, and goes to its next owner, when `revoked`
/// has returned and so has the `assignment_changed` that removes it. One that
/// takes longer than `stop_deadline` is reported; after twice that, `overdue`
/// decides. A hook that waits for its turn for as long is reported, too.
///
/// A start that takes longer than `start_deadline`, or has failed
/// `start_attempts` times in a row, is reported, and its partition goes to
/// another worker if one can take it; it comes back after a while, later each
/// time. After twice `start_deadline` the future of a start is dropped and
/// `revoked` called, which has to stop whatever had begun. One that blocks its
/// thread cannot be dropped: after three times `start_deadline`, `overdue`
/// decides.
///
/// A worker with a task for each of its partitions:
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use divvy::Partition;
/// use divvy::manager::{Grant, HookError, Hooks};
/// use tokio::task::JoinHandle;
///
/// #[derive(Default)]
/// struct Tasks(Mutex<HashMap<String, JoinHandle<()>>>);
///
/// #[async_trait]
/// impl Hooks for Tasks {
///     async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
///         let task = tokio::spawn(async move { grant.ended().await });
///         self.0.lock().unwrap().insert(partition.to_string(), task);
///         Ok(())
///     }
///
///     async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
///         let task = self.0.lock().unwrap().remove(partition.as_str());
///         if let Some(task) = task {
///             task.abort();
///             let _aborted = task.await;
///         }
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// The partition is this worker's: start working on it, and return. An
    /// error, or a panic, means that nothing runs; it is tried again a
    /// heartbeat later, then after two, and so on.
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        let _unused = (partition, grant);
        Ok(())
    }

    /// The partition goes to another worker, or the lease is about to end:
    /// stop working on it, and return when that is done. After an error, or a
    /// panic, it counts as stopped.
    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        let _unused = partition;
        Ok(())
    }

    /// What `assigned` and `revoked` are called for, several at once; runs
    /// beside them. For applications that subscribe by list. An error is
    /// reported and changes nothing.
    async fn assignment_changed(
        &self,
        added: &[Partition],
        removed: &[Partition],
    ) -> Result<(), HookError> {
        let _unused = (added, removed);
        Ok(())
    }

    /// The worker's state changed. Ended when it takes longer than
    /// `stop_deadline`, as are the other two below.
    async fn state_changed(&self, from: State, to: State) {
        let _unused = (from, to);
    }

    /// This worker began or ceased to lead.
    async fn leadership_changed(&self, is_leader: bool) {
        let _unused = is_leader;
    }

    /// Something went wrong that the manager survives.
    async fn error(&self, error: &ManagerError) {
        let _unused = error;
    }
}

/// Hooks that the application keeps a hold of.
#[async_trait]
impl<H: Hooks + ?Sized> Hooks for Arc<H> {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        (**self).assigned(partition, grant).await
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        (**self).revoked(partition).await
    }

    async fn assignment_changed(
        &self,
        added: &[Partition],
        removed: &[Partition],
    ) -> Result<(), HookError> {
        (**self).assignment_changed(added, removed).await
    }

    async fn state_changed(&self, from: State, to: State) {
        (**self).state_changed(from, to).await;
    }

    async fn leadership_changed(&self, is_leader: bool) {
        (**self).leadership_changed(is_leader).await;
    }

    async fn error(&self, error: &ManagerError) {
        (**self).error(error).await;
    }
}

/// No hooks: for who only looks at the assignment.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
