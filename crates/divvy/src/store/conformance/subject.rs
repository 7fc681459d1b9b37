//! What is tested: a store, as far as the suite has to know it.

use std::sync::Arc;

use async_trait::async_trait;
use divvy_core::store::{Key, StoreError};

use super::super::{KeyValue, Leases};
use super::report::CaseRun;

/// A key-value store that the suite is to judge.
#[async_trait]
pub trait KeyValueSubject: Send + Sync {
    /// A further client of the same store for this cluster, with a connection
    /// of its own if there are connections.
    async fn open(&self, cluster: &str) -> Result<Arc<dyn KeyValue>, StoreError>;

    /// How the store can be taken away from its clients, if it can.
    fn interruption(&self) -> Option<&dyn Interruption> {
        None
    }

    /// A client that an interruption does not concern, if there can be one:
    /// what it writes meanwhile, the others must find afterwards.
    async fn open_aside(&self, cluster: &str) -> Result<Option<Arc<dyn KeyValue>>, StoreError> {
        let _same_for_all = cluster;
        Ok(None)
    }

    /// A program that writes to the store's keys as it likes, if there is one.
    fn vandal(&self) -> Option<&dyn Vandal> {
        None
    }

    /// Told of every case as it is passed, for who wants to see how far it is.
    fn passed(&self, case: &CaseRun) {
        let _unused = case;
    }
}

/// A program that writes to a store's keys with no regard to its rules.
#[async_trait]
pub trait Vandal: Send + Sync {
    /// Writes over the value of a key of this cluster, around the store. Gives
    /// whether that can be done on this store.
    async fn spoil(&self, cluster: &str, key: &Key, with: Spoilt) -> bool;
}

/// What somebody else writes over a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoilt {
    /// Bytes that mean nothing.
    Garbage,
    /// Nothing at all.
    Empty,
    /// Something that is no value, such as a list.
    OtherType,
}

impl Spoilt {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Garbage, Self::Empty, Self::OtherType];

    /// The bytes of it, where there are some.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Garbage => b"\xff\x00garbage",
            Self::Empty | Self::OtherType => b"",
        }
    }
}

/// A lease store that the suite is to judge.
#[async_trait]
pub trait LeaseSubject: Send + Sync {
    /// A further client of the same store for this cluster, with a connection
    /// of its own if there are connections. It must grant leases at once: a
    /// quarantine after a restart is off, or over.
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError>;

    /// How the store can be taken away from its clients, if it can.
    fn interruption(&self) -> Option<&dyn Interruption> {
        None
    }

    /// A client that an interruption does not concern, if there can be one:
    /// what it writes meanwhile, the others must find afterwards.
    async fn open_aside(&self, cluster: &str) -> Result<Option<Arc<dyn Leases>>, StoreError> {
        let _same_for_all = cluster;
        Ok(None)
    }

    /// A store that can be made to forget, if there is one.
    fn forgetting(&self) -> Option<&dyn Forgetting> {
        None
    }

    /// Told of every case as it is passed, for who wants to see how far it is.
    fn passed(&self, case: &CaseRun) {
        let _unused = case;
    }
}

/// A lease store that can be made to forget. It has a quarantine, and nobody
/// else uses it.
#[async_trait]
pub trait Forgetting: Send + Sync {
    /// A further client of it for this cluster.
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError>;

    /// Restarts the store, with all that it has.
    async fn restart(&self);

    /// Throws away all that the store has, without a restart.
    async fn empty(&self);
}

/// A way to take a store away from its clients and to give it back, with
/// everything that it has acknowledged.
#[async_trait]
pub trait Interruption: Send + Sync {
    /// From now on no client reaches the store, except those that were opened
    /// aside.
    async fn interrupt(&self);

    /// From now on clients reach it again.
    async fn resume(&self);
}
