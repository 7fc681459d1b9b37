//! The other crates, each behind the same small trait.
//!
//! Each is used as its documentation shows and given what it asks for: names, weights, and a hasher
//! that does not change between runs. Where a crate lets its user choose the hasher, it appears twice:
//! under its name with the hasher that it has by default (with fixed keys), and as `… + foldhash` with
//! the fastest hasher for short strings that a user could hand to it.

mod cluster;
mod plain;
mod rendezvous;
mod ring;
mod slots;

pub(crate) use cluster::Cluster;
pub(crate) use plain::Plain;
pub(crate) use rendezvous::{Candidates, Carp, Hrw, HrwHash, Replicated, Weighted};
pub(crate) use ring::{ConsistentHash, HashRing, Ketama, KetamaVersion};
pub(crate) use slots::{Anchor, Jump, Maglev};

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// The standard library's hasher with fixed keys: what peers have by default, without the random state.
pub(crate) type Sip = BuildHasherDefault<DefaultHasher>;

/// A fast hasher with a fixed state.
pub(crate) type Fold = foldhash::fast::FixedState;

/// Says who owns a key.
pub(crate) trait Placer {
    /// The index of the worker that owns `key`.
    fn owner(&self, key: &str) -> u32;

    /// The owner of each key.
    fn owners(&self, keys: &[String]) -> Vec<u32> {
        keys.iter().map(|key| self.owner(key)).collect()
    }
}

impl Placer for divvy_core::Ring {
    fn owner(&self, key: &str) -> u32 {
        self.owner_of(key)
    }
}

/// A hash of both, one after the other.
fn hash_pair(build: &impl BuildHasher, first: impl Hash, second: impl Hash) -> u64 {
    let mut hasher = build.build_hasher();
    first.hash(&mut hasher);
    second.hash(&mut hasher);
    hasher.finish()
}
