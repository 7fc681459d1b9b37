//! What an application does with messages.

use std::error::Error as StdError;
use std::fmt;

use async_trait::async_trait;
use divvy_core::Partition;

use super::message::Message;
use crate::manager::{Grant, HookError};

/// Handles messages of partitions that this worker owns.
///
/// A message is acknowledged when `handle` has returned `Ok`, so it may come
/// again when a worker dies in between: give `grant.token()` to what you write
/// to, together with what tells a message from another
/// ([`Message::sequence`]), and return an error where the token is refused.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Does what a message asks for. It is dropped where it waits when the
    /// grant ends, and when its partition is asked back and `drain_timeout` is
    /// over. A panic counts as a failure. It must not block its thread: while it
    /// does, nobody can cut it off or tell the server that it goes on.
    async fn handle(
        &self,
        message: &Message,
        partition: &Partition,
        grant: &Grant,
    ) -> Result<(), Failure>;
}

/// Why a message was not handled. Every error becomes one by `?`, and means to
/// try again.
///
/// ```
/// use divvy::subscriptions::Failure;
///
/// fn amount(payload: &[u8]) -> Result<u64, Failure> {
///     // What cannot be read today cannot be read tomorrow.
///     let text = std::str::from_utf8(payload).map_err(Failure::poison)?;
///     text.parse().map_err(Failure::poison)
/// }
///
/// assert_eq!(amount(b"12").unwrap(), 12);
/// assert!(amount(b"a dozen").unwrap_err().is_poison());
/// ```
#[derive(Debug)]
pub struct Failure {
    is_final: bool,
    cause: HookError,
}

impl Failure {
    /// It may work next time: the message comes again after a delay, unless it
    /// was given out `max_deliver` times.
    pub fn retry(cause: impl Into<HookError>) -> Self {
        Self {
            is_final: false,
            cause: cause.into(),
        }
    }

    /// It will never work: the message goes to the dead letters at once.
    pub fn poison(cause: impl Into<HookError>) -> Self {
        Self {
            is_final: true,
            cause: cause.into(),
        }
    }

    /// Whether there is no use in trying again.
    pub fn is_poison(&self) -> bool {
        self.is_final
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

// Not an error itself, or this would not be possible.
impl<E: StdError + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}
