//! What is tested: a store, as far as the suite has to know it.

use std::sync::Arc;

use async_trait::async_trait;
use divvy_core::store::StoreError;

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

    /// Told of every case as it is passed, for who wants to see how far it is.
    fn passed(&self, case: &CaseRun) {
        let _unused = case;
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

    /// Told of every case as it is passed, for who wants to see how far it is.
    fn passed(&self, case: &CaseRun) {
        let _unused = case;
    }
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
