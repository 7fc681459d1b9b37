//! What can go wrong with subscriptions, and what to do about it.

use divvy_core::store::StoreError;
use divvy_core::{Error, Invalid};

/// Why subscriptions could not do something. Messages are not touched by any
/// of these: what is not acknowledged comes again.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SubscriptionError {
    /// A setting or a partition breaks a rule. Fix what the message names.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// The server is not reached, or its stream or consumers cannot be used as
    /// they are. The kind and the message say what to do.
    #[error(transparent)]
    Server(#[from] StoreError),
}

impl From<Error> for SubscriptionError {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(invalid) => Self::Invalid(invalid),
            other => Self::Invalid(Invalid::new("settings", "", other.to_string())),
        }
    }
}
