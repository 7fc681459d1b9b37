//! What can go wrong with a store, and what to do about it.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::error::{Invalid, shown};

/// Longest message that an error carries, in characters.
const MESSAGE_CHARS_MAX: usize = 400;

/// What to do about a failed operation: the only thing that code should branch
/// on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Nothing happened, and it may work later: retry.
    Unavailable,
    /// The write may have happened, or may still happen later: read again
    /// before deciding, and never send it again blindly.
    Unknown,
    /// This store cannot be used as it is: a server too old, settings or
    /// permissions that do not fit, no space. Stop and tell the operator.
    Unfit,
    /// The input breaks a rule, and no retry can help: fix it.
    Invalid,
}

impl StoreErrorKind {
    /// The advice in one word or two.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Unavailable => "retry",
            Self::Unknown => "read again",
            Self::Unfit => "stop",
            Self::Invalid => "fix the input",
        }
    }
}

/// A failed operation on a store. Nothing that was acknowledged before is lost.
///
/// Messages hold no secret: stores put neither passwords nor whole addresses
/// with credentials into them.
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Box<str>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// An error of `kind`. A long message is shortened and control characters
    /// are escaped, because parts of it may come from a server.
    pub fn new(kind: StoreErrorKind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            message: shown(&message.to_string(), MESSAGE_CHARS_MAX).into(),
            source: None,
        }
    }

    /// [`StoreErrorKind::Unavailable`] with this message.
    pub fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(StoreErrorKind::Unavailable, message)
    }

    /// [`StoreErrorKind::Unknown`] with this message.
    pub fn unknown(message: impl fmt::Display) -> Self {
        Self::new(StoreErrorKind::Unknown, message)
    }

    /// [`StoreErrorKind::Unfit`] with this message.
    pub fn unfit(message: impl fmt::Display) -> Self {
        Self::new(StoreErrorKind::Unfit, message)
    }

    /// What to do about it.
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The same error with the failure that caused it. It must not hold a
    /// secret.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<Invalid> for StoreError {
    fn from(invalid: Invalid) -> Self {
        // Not as its cause: whoever prints both would say it twice.
        Self::new(StoreErrorKind::Invalid, &invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_message_is_shortened_and_escaped() {
        let error = StoreError::unavailable("\u{1b}[31m".repeat(1000));
        assert!(error.to_string().len() < 4000);
        assert!(!error.to_string().contains('\u{1b}'));
    }

    #[test]
    fn invalid_input_keeps_its_field_is_told_once_and_asks_to_be_fixed() {
        let error = StoreError::from(Invalid::new("key", "", "must not be empty"));
        assert_eq!(error.kind().advice(), "fix the input");
        assert_eq!(error.to_string(), "key '': must not be empty");
        assert!(error.source().is_none());
    }
}
