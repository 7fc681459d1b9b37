//! The store of a member, before it is opened.

use std::sync::Arc;

use super::{KeyValue, Leases, MemoryKeyValue, MemoryLeases, StoreSettings, StoreUrl};

/// The store of a member: one that is open, or an address.
///
/// An open store does its work on the runtime that it was opened on. One that
/// is given by its address is opened on the member's own thread: then an
/// application that blocks its runtime cannot hold up heartbeats and renewals.
#[derive(Debug)]
pub enum Choice<S: ?Sized> {
    /// This one.
    Open(Arc<S>),
    /// The one at this address; the cluster is that of the settings.
    At(StoreUrl, Box<StoreSettings>),
}

/// The store of a [`Manager`](crate::manager::Manager).
pub type StoreChoice = Choice<dyn KeyValue>;

/// The store of a [`Controller`](crate::controller::Controller).
pub type LeaseStoreChoice = Choice<dyn Leases>;

impl<S: ?Sized> Clone for Choice<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Open(store) => Self::Open(Arc::clone(store)),
            Self::At(url, settings) => Self::At(url.clone(), settings.clone()),
        }
    }
}

impl<S: ?Sized> From<Arc<S>> for Choice<S> {
    fn from(store: Arc<S>) -> Self {
        Self::Open(store)
    }
}

impl<S: KeyValue> From<Arc<S>> for StoreChoice {
    fn from(store: Arc<S>) -> Self {
        Self::Open(store)
    }
}

impl<S: Leases> From<Arc<S>> for LeaseStoreChoice {
    fn from(store: Arc<S>) -> Self {
        Self::Open(store)
    }
}

impl From<MemoryKeyValue> for StoreChoice {
    fn from(store: MemoryKeyValue) -> Self {
        Self::Open(Arc::new(store))
    }
}

impl From<MemoryLeases> for LeaseStoreChoice {
    fn from(store: MemoryLeases) -> Self {
        Self::Open(Arc::new(store))
    }
}

impl<S: ?Sized> From<(StoreUrl, StoreSettings)> for Choice<S> {
    fn from((url, settings): (StoreUrl, StoreSettings)) -> Self {
        Self::At(url, Box::new(settings))
    }
}
