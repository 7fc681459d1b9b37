//! Ends a cluster for good: all that it has written is removed.
//!
//! It is for clusters that were made to be thrown away. What stores keep for
//! ever, such as the last token of each lease, goes too.

use divvy_core::lease::Group;
use divvy_core::store::{LeaseKey, StoreError};

use super::settings::StoreSettings;
use super::url::{StoreKind, StoreUrl};
use super::{open_key_value, open_leases};

/// Leases that are removed at once.
const LEASES_PER_CALL: usize = 1000;

/// Erases what the cluster of `settings` has written in leader mode: its keys,
/// deletions and the counts behind them. Other clusters are not touched. Whoever
/// of it still lives has to begin anew.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use divvy::store::{StoreSettings, erase_key_value};
///
/// erase_key_value(&"memory".parse()?, &StoreSettings::default()).await?;
/// # Ok::<(), divvy::store::StoreError>(())
/// # }).unwrap();
/// ```
pub async fn erase_key_value(url: &StoreUrl, settings: &StoreSettings) -> Result<(), StoreError> {
    settings.check()?;
    match url.kind() {
        // A new one each time: there is nothing in it.
        StoreKind::Memory => Ok(()),
        #[cfg(feature = "file")]
        StoreKind::File => {
            let store = super::file::FileStore::open(url, settings).await?;
            store.erase_keys().await
        }
        #[cfg(feature = "nats")]
        StoreKind::Nats => {
            let store = super::nats::NatsStore::open(url, settings).await?;
            store.erase().await
        }
        #[cfg(feature = "redis")]
        StoreKind::Redis => {
            let store = super::redis::RedisKeyValue::open(url, settings).await?;
            store.erase().await
        }
        #[allow(unreachable_patterns)] // with all features there is no other kind
        _ => open_key_value(url, settings).await.map(drop),
    }
}

/// Erases what the cluster of `settings` has written in lease mode: its workers,
/// what operators wish, its log of moves, and the leases, tokens and marks of
/// `groups`. These are shared by all clusters of a store, so name those only
/// that nobody else has. What workers hold at this time is over.
pub async fn erase_leases(
    url: &StoreUrl,
    settings: &StoreSettings,
    groups: &[Group],
) -> Result<(), StoreError> {
    settings.check()?;
    Group::check_all(groups)?;
    match url.kind() {
        // A new one each time: there is nothing in it.
        StoreKind::Memory => Ok(()),
        #[cfg(feature = "file")]
        StoreKind::File => {
            let store = super::file::FileStore::open(url, settings).await?;
            for some in keys_of(groups).chunks(LEASES_PER_CALL) {
                store.erase_leases(some).await?;
            }
            store.erase_members().await
        }
        #[cfg(feature = "redis")]
        StoreKind::Redis => {
            let store = super::redis::RedisLeases::open(url, settings).await?;
            for some in keys_of(groups).chunks(LEASES_PER_CALL) {
                store.erase_leases(some).await?;
            }
            store.erase_members().await
        }
        #[allow(unreachable_patterns)] // with all features there is no other kind
        _ => open_leases(url, settings).await.map(drop),
    }
}

/// The leases of groups.
fn keys_of(groups: &[Group]) -> Vec<LeaseKey> {
    let each = groups.iter().flat_map(|group| {
        (0..group.partitions()).map(|number| LeaseKey {
            group: group.name().clone(),
            number,
        })
    });
    each.collect()
}
