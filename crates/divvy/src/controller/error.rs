//! What can go wrong with a controller, and what to do about it.

use std::time::Duration;

use divvy_core::store::StoreError;
use divvy_core::{Error, Invalid};

/// Why a controller could not do something.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// A setting breaks a rule. Fix the field that the message names.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// The store is not reached. Try again, or check its address.
    #[error("connection to the store lost: {0}")]
    ConnectionLost(Box<str>),

    /// The store cannot be used as it is. Its message says what to change.
    #[error(transparent)]
    Store(#[from] StoreError),

    /// Another process has this worker's name, and keeps it. Give each process
    /// a name of its own.
    #[error("another process is worker '{0}' of this cluster; give each process a name of its own")]
    NameTaken(Box<str>),

    /// It was not done within `startup_timeout`. Nothing was left behind.
    #[error("start was not done within startup_timeout ({limit:?}){}", because(last.as_deref()))]
    StartTimedOut {
        /// How long it may take.
        limit: Duration,
        /// What was last seen to be wrong.
        last: Option<Box<str>>,
    },

    /// Something did not stop within `shutdown_timeout`: its lease has to run
    /// out before others take it.
    #[error(
        "stop was not done within shutdown_timeout ({limit:?}); others take over when the leases are over"
    )]
    StopTimedOut {
        /// How long it may take.
        limit: Duration,
    },

    /// Something that needs a person, or mends itself.
    #[error("{0}")]
    Problem(Box<str>),

    /// The controller has ended.
    #[error("the controller has ended: {0}")]
    Ended(Box<str>),
}

impl From<Error> for ControllerError {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(invalid) => Self::Invalid(invalid),
            other => Self::Problem(other.to_string().into()),
        }
    }
}

fn because(last: Option<&str>) -> String {
    last.map_or_else(String::new, |last| format!(": {last}"))
}
