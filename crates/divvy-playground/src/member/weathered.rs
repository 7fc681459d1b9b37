//! The store of a member, as its weather lets it be.

use std::sync::Arc;

use async_trait::async_trait;
use divvy::store::{Connection, Incarnation, Store, StoreError};
use tokio::sync::watch;

use super::weather::{Nature, Sky};

/// A store of either kind, under a sky.
#[derive(Debug)]
pub(super) struct Weathered<S: ?Sized> {
    pub(super) store: Arc<S>,
    pub(super) sky: Sky,
}

impl<S: ?Sized> Weathered<S> {
    pub(super) fn new(store: Arc<S>, sky: &Sky) -> Self {
        Self {
            store,
            sky: sky.clone(),
        }
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for Weathered<S> {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        self.sky.carry(Nature::Read, self.store.incarnation()).await
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.store.connection()
    }

    fn connects(&self) -> u64 {
        self.store.connects()
    }

    fn forgets(&self) -> bool {
        self.store.forgets()
    }
}
