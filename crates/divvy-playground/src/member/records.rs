//! The key-value store of a member, as its weather lets it be.

use std::sync::Arc;

use async_trait::async_trait;
use divvy::store::{
    Connection, Entry, Expected, Hint, Hints, Incarnation, Key, KeyValue, Notice, Outcome, Prefix,
    Revision, Store, StoreError, Watch,
};
use tokio::sync::watch;

use super::weather::{Nature, Sky};

/// Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Records {
    store: Arc<dyn KeyValue>,
    sky: Sky,
}

impl Records {
    pub(super) fn new(store: Arc<dyn KeyValue>, sky: &Sky) -> Self {
        Self {
            store,
            sky: sky.clone(),
        }
    }
}

#[async_trait]
impl Store for Records {
    fn describe(&self) -> String {
        self.store.describe()
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        self.sky.carry(Nature::Read, self.store.incarnation()).await
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.store.connection()
    }

    fn forgets(&self) -> bool {
        self.store.forgets()
    }
}

#[async_trait]
impl KeyValue for Records {
    async fn get(&self, key: &Key) -> Result<Option<Entry>, StoreError> {
        self.sky.carry(Nature::Read, self.store.get(key)).await
    }

    async fn compare_and_set(
        &self,
        key: &Key,
        expected: Expected,
        value: &[u8],
    ) -> Result<Outcome<Revision>, StoreError> {
        let written = self.store.compare_and_set(key, expected, value);
        self.sky.carry(Nature::Write, written).await
    }

    async fn delete(&self, key: &Key, revision: Revision) -> Result<Outcome<Revision>, StoreError> {
        let deleted = self.store.delete(key, revision);
        self.sky.carry(Nature::Write, deleted).await
    }

    async fn list(&self, prefix: &Prefix) -> Result<Vec<Entry>, StoreError> {
        self.sky.carry(Nature::Read, self.store.list(prefix)).await
    }

    async fn watch(&self, prefix: &Prefix) -> Result<Watch, StoreError> {
        let watch = self.sky.carry(Nature::Read, self.store.watch(prefix));
        let heard = Heard {
            watch: watch.await?,
            sky: self.sky.clone(),
        };
        let store = Arc::new(self.clone());
        Ok(Watch::start(store, prefix.clone(), Box::new(heard)))
    }

    fn value_bytes_max(&self) -> usize {
        self.store.value_bytes_max()
    }
}

/// What is heard of changes.
struct Heard {
    watch: Watch,
    sky: Sky,
}

#[async_trait]
impl Hints for Heard {
    async fn next(&mut self) -> Hint {
        loop {
            let notice = self.watch.next().await;
            if !self.sky.is_heard() {
                // What comes meanwhile is lost, and this one was.
                self.sky.until_heard().await;
                return Hint::Missed;
            }
            match notice {
                Ok(Notice::Changed(change)) => return Hint::Change(change),
                Ok(Notice::Current) => {}
                Err(_unlisted) => return Hint::Missed,
            }
        }
    }
}
