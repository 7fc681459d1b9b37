//! What coordination stands on: the words of the two store contracts, and
//! their reference semantics in memory.
//!
//! Leader mode needs a key-value store with compare-and-set and nothing more:
//! no expiry, no fresh reads, no order between keys. [`KeyValueTable`] is that
//! contract as a pure value. Lease mode needs leases that the store itself lets
//! expire; [`LeaseTable`] is that contract, handed the time with every call.
//!
//! The traits over I/O, and the stores that implement them, are in the crate
//! `divvy`. Whatever they do, they must do as these tables do: one conformance
//! suite compares them.

mod chunk;
mod error;
mod key;
mod key_value_table;
mod lease;
mod lease_table;
mod move_log;
mod quarantine;

pub use chunk::{CHUNK_BYTES_MAX, CHUNKS_MAX, ChunkManifest};
pub use error::{StoreError, StoreErrorKind};
pub use key::{KEY_BYTES_MAX, KEY_PARTS_MAX, Key, Prefix, decode_part, encode_part};
pub use key_value_table::{Change, KeyValueTable};
pub(crate) use lease::SERVED_GROUPS_MAX;
pub use lease::{
    Acquired, Beaten, Claim, GivingUp, GroupDocument, Heartbeat, Holder, LEASE_NAME_BYTES_MAX,
    LeaseKey, LeaseName, LeaseNotice, Member, Nonce, SessionStart, Tenure, Token, WorkerId,
    WorkerInfo,
};
pub use lease_table::{LeaseTable, StoreTime};
pub use move_log::{MOVE_LINES_MAX, MOVES_PER_CALL_MAX, check_moves, with_moves};
pub use quarantine::{Quarantine, QuarantineId, QuarantineReport};

use std::sync::Arc;

/// Which write of a key this is. Revisions of a key only increase, also over
/// deletion and creation anew; nothing else may be read into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(std::num::NonZeroU64);

impl Revision {
    /// The revision with this number, which is not 0.
    pub const fn new(number: u64) -> Option<Self> {
        match std::num::NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A key with the value that it had at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value that was written.
    pub value: Arc<[u8]>,
    /// The write that brought it.
    pub revision: Revision,
}

/// What a write expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No value: the write creates the key.
    Absent,
    /// The value of this very write.
    At(Revision),
}

impl From<Option<Revision>> for Expected {
    fn from(revision: Option<Revision>) -> Self {
        revision.map_or(Self::Absent, Self::At)
    }
}

/// What became of a conditional write. Losing is a value, not an error: the
/// store works, another writer was first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a write that lost has not happened"]
pub enum Outcome<T> {
    /// It was written.
    Done(T),
    /// The key was not as expected, and nothing was written. Read it again.
    Conflict,
}

impl<T> Outcome<T> {
    /// What was written, if it was.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Conflict => None,
        }
    }

    /// Whether another writer was first.
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict)
    }
}

/// Which life of a store this is. A store that may have forgotten what it
/// acknowledged has another incarnation afterwards; members compare it for
/// equality and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(Box<str>);

impl Incarnation {
    /// Longest text of an incarnation, in bytes; what is longer is cut.
    pub const BYTES_MAX: usize = 128;

    /// An incarnation by what the store says of itself.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        Self(text[..text.floor_char_boundary(Self::BYTES_MAX)].into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
