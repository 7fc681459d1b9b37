//! A store by its address.

use std::sync::Arc;

use divvy_core::Invalid;
use divvy_core::store::StoreError;

use super::memory::{MemoryKeyValue, MemoryLeases};
use super::settings::StoreSettings;
use super::url::{StoreKind, StoreUrl};
use super::{KeyValue, Leases};

/// Opens the key-value store at an address. A `memory` store is a new one each
/// time.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use divvy::store::{Expected, Key, Outcome, StoreSettings, open_key_value};
///
/// let store = open_key_value(&"memory".parse()?, &StoreSettings::default()).await?;
/// let key = Key::new(["greeting"])?;
/// let written = store.compare_and_set(&key, Expected::Absent, b"hello").await?;
/// assert!(matches!(written, Outcome::Done(_)));
/// # Ok::<(), divvy::store::StoreError>(())
/// # }).unwrap();
/// ```
pub async fn open_key_value(
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<Arc<dyn KeyValue>, StoreError> {
    settings.check()?;
    match url.kind() {
        StoreKind::Memory => Ok(Arc::new(MemoryKeyValue::new())),
        #[cfg(feature = "file")]
        StoreKind::File => Ok(Arc::new(super::file::FileStore::open(url, settings).await?)),
        #[cfg(feature = "nats")]
        StoreKind::Nats => Ok(Arc::new(super::nats::NatsStore::open(url, settings).await?)),
        #[cfg(feature = "redis")]
        StoreKind::Redis => Ok(Arc::new(
            super::redis::RedisKeyValue::open(url, settings).await?,
        )),
        #[allow(unreachable_patterns)] // with all features there is no other kind
        other => Err(not_built_in(url, other)),
    }
}

/// Opens the lease store at an address. A `memory` store is a new one each
/// time.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use divvy::store::{StoreSettings, open_leases};
///
/// let settings = StoreSettings { cluster: "shop".to_owned(), ..StoreSettings::default() };
/// let store = open_leases(&"memory".parse()?, &settings).await?;
/// assert_eq!(store.cluster(), "shop");
/// assert!(store.members().await?.is_empty());
/// # Ok::<(), divvy::store::StoreError>(())
/// # }).unwrap();
/// ```
pub async fn open_leases(
    url: &StoreUrl,
    settings: &StoreSettings,
) -> Result<Arc<dyn Leases>, StoreError> {
    settings.check()?;
    match url.kind() {
        StoreKind::Memory => Ok(Arc::new(MemoryLeases::new(&settings.cluster)?)),
        #[cfg(feature = "file")]
        StoreKind::File => Ok(Arc::new(super::file::FileStore::open(url, settings).await?)),
        #[cfg(feature = "redis")]
        StoreKind::Redis => Ok(Arc::new(
            super::redis::RedisLeases::open(url, settings).await?,
        )),
        StoreKind::Nats => {
            let rule = "has no leases; lease mode runs on memory, file and redis stores";
            Err(Invalid::new("store", url, rule).into())
        }
        #[allow(unreachable_patterns)] // with all features there is no other kind
        other => Err(not_built_in(url, other)),
    }
}

#[allow(dead_code)] // with all features every kind is built in
fn not_built_in(url: &StoreUrl, kind: StoreKind) -> StoreError {
    let feature = format!("{kind:?}").to_lowercase();
    let rule = format!("needs the feature `{feature}`, without which this program was built");
    Invalid::new("store", url, rule).into()
}
