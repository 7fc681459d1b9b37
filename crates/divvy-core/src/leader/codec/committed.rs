//! A root as it was committed, with what is needed to write the next one.

use std::sync::Arc;

use super::base::Base;
use super::place::Place;
use crate::error::Invalid;
use crate::leader::record::Root;
use crate::partition::Partitions;
use crate::store::Key;

/// A root, the partitions that it is about, and where its parts lie.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The root.
    pub root: Root,
    /// The partitions, in the order of its entries.
    pub partitions: Partitions,
    pub(super) list: Place,
    pub(super) base_place: Place,
    pub(super) base: Arc<Base>,
}

impl Committed {
    /// The chunks that this root names.
    pub fn chunk_keys(&self) -> Vec<Key> {
        let mut keys = self.list.chunk_keys();
        keys.extend(self.base_place.chunk_keys());
        keys
    }
}

/// Why a root could not be put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssembleError {
    /// This chunk is not at hand. If the store does not have it either, there
    /// is a newer root: read that.
    Missing(Key),
    /// A part is not what was written.
    Invalid(Invalid),
}

impl From<Invalid> for AssembleError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}
