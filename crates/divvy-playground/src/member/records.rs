//! The key-value store of a member, as its weather lets it be.

use std::sync::Arc;

use async_trait::async_trait;
use divvy::store::{
    Entry, Expected, Hint, Hints, Key, KeyValue, Notice, Outcome, Prefix, Revision, StoreError,
    Watch,
};

use super::weather::{Nature, Sky};
use super::weathered::Weathered;

#[async_trait]
impl KeyValue for Weathered<dyn KeyValue> {
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
        let store = Arc::new(Self::new(Arc::clone(&self.store), &self.sky));
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
