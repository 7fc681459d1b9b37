//! The clusters that a store has, for people who have named another.

use std::collections::BTreeSet;

use divvy_core::store::StoreError;
use tokio::time::timeout;

use super::settings::StoreSettings;
use super::url::{StoreKind, StoreUrl};

/// The names of the clusters at an address, as far as its user may list them
/// and that does not take long. For messages only.
pub(crate) async fn cluster_names(url: &StoreUrl, settings: &StoreSettings) -> BTreeSet<String> {
    let listed = timeout(settings.operation_timeout, listed(url, settings)).await;
    listed.ok().and_then(Result::ok).unwrap_or_default()
}

async fn listed(url: &StoreUrl, settings: &StoreSettings) -> Result<BTreeSet<String>, StoreError> {
    match url.kind() {
        #[cfg(feature = "file")]
        StoreKind::File => {
            let store = super::file::FileStore::open(url, settings).await?;
            store.clusters().await
        }
        #[cfg(feature = "nats")]
        StoreKind::Nats => {
            let store = super::nats::NatsStore::open(url, settings).await?;
            store.clusters().await
        }
        #[cfg(feature = "redis")]
        StoreKind::Redis => super::redis::clusters(url, settings).await,
        // A new one each time: there is nothing in it.
        StoreKind::Memory => Ok(BTreeSet::new()),
        #[allow(unreachable_patterns)] // with all features there is no other kind
        _ => {
            let refused = super::open_key_value(url, settings).await;
            refused.map(|_store| BTreeSet::new())
        }
    }
}
