//! Fields of documents, as settings take them and show them.

use divvy_core::leader::Overdue;
use serde::{Deserialize, Serialize};

/// Takes the value that was given, if one was.
pub(crate) fn set<T, G: Into<T>>(field: &mut T, given: Option<G>) {
    if let Some(given) = given {
        *field = given.into();
    }
}

/// What happens to a hook that does not end, by its name.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverdueName {
    Abort,
    Report,
}

impl From<OverdueName> for Overdue {
    fn from(name: OverdueName) -> Self {
        match name {
            OverdueName::Abort => Self::Abort,
            OverdueName::Report => Self::Report,
        }
    }
}

impl From<Overdue> for OverdueName {
    fn from(overdue: Overdue) -> Self {
        match overdue {
            Overdue::Abort => Self::Abort,
            Overdue::Report => Self::Report,
        }
    }
}
