//! Leader election by somebody else.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::hooks::HookError;

/// Decides who may lead, in place of the store. Which worker leads is never a
/// matter of safety: an agent that elects two, or nobody, costs progress only.
///
/// Calls come one at a time, each within `election_timeout`. An error or a
/// late answer counts as not elected.
#[async_trait]
pub trait ElectionAgent: Send + Sync + 'static {
    /// Asks to lead for `lease`; whether that is granted.
    async fn request_leadership(&self, worker: &str, lease: Duration) -> Result<bool, HookError>;

    /// Goes on leading. An error ends it.
    async fn renew_leadership(&self) -> Result<(), HookError>;

    /// Leads no more. A stop waits for it, for as long as stopping may take.
    async fn release_leadership(&self) -> Result<(), HookError>;

    /// Whether this worker leads, as far as the agent knows. Asked before a
    /// renewal.
    async fn is_leader(&self) -> bool;
}

/// An agent that the application keeps a hold of.
#[async_trait]
impl<A: ElectionAgent + ?Sized> ElectionAgent for Arc<A> {
    async fn request_leadership(&self, worker: &str, lease: Duration) -> Result<bool, HookError> {
        (**self).request_leadership(worker, lease).await
    }

    async fn renew_leadership(&self) -> Result<(), HookError> {
        (**self).renew_leadership().await
    }

    async fn release_leadership(&self) -> Result<(), HookError> {
        (**self).release_leadership().await
    }

    async fn is_leader(&self) -> bool {
        (**self).is_leader().await
    }
}
