//! Stores of the tests, with short timings.

use std::time::Duration;

use divvy::store::nats::NatsStore;
use divvy::store::{
    Expected, Key, KeyValue, Outcome, Revision, StoreError, StoreErrorKind, StoreSettings,
};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion};

/// Longer than anything takes.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) fn settings() -> StoreSettings {
    StoreSettings {
        cluster: "tests".to_owned(),
        connect_timeout: Duration::from_secs(10),
        operation_timeout: Duration::from_secs(4),
        reconnect_delay_max: Duration::from_millis(100),
        // Shorter, and a busy machine's servers would seem dead.
        ping_interval: Duration::from_secs(1),
        ..StoreSettings::default()
    }
}

pub(crate) async fn newest() -> NatsServer {
    NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await
}

pub(crate) async fn try_open(url: &str, settings: &StoreSettings) -> Result<NatsStore, StoreError> {
    NatsStore::open(&url.parse().unwrap(), settings).await
}

pub(crate) async fn open(url: &str) -> NatsStore {
    try_open(url, &settings()).await.unwrap()
}

/// Why it can't be opened, which must be known within the bound.
pub(crate) async fn refusal(url: &str, settings: &StoreSettings) -> StoreError {
    let bound = settings.connect_timeout + Duration::from_secs(1);
    let opening = tokio::time::timeout(bound, try_open(url, settings));
    match opening.await.expect("opening ends in time") {
        Ok(store) => panic!("opened {store:?}"),
        Err(error) => error,
    }
}

#[track_caller]
pub(crate) fn assert_refused(error: &StoreError, kind: StoreErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no '{word}' in: {error}");
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key::new([name]).unwrap()
}

pub(crate) async fn create(store: &NatsStore, name: &str, value: &[u8]) -> Revision {
    done(
        store
            .compare_and_set(&key(name), Expected::Absent, value)
            .await,
    )
}

/// Writes if it is at this revision.
pub(crate) async fn try_update(
    store: &impl KeyValue,
    name: &str,
    at: Revision,
    value: &[u8],
) -> Result<Outcome<Revision>, StoreError> {
    store
        .compare_and_set(&key(name), Expected::At(at), value)
        .await
}

pub(crate) async fn update(store: &NatsStore, name: &str, at: Revision, value: &[u8]) -> Revision {
    done(try_update(store, name, at, value).await)
}

#[track_caller]
pub(crate) fn done(outcome: Result<Outcome<Revision>, StoreError>) -> Revision {
    outcome.unwrap().done().expect("nobody else writes it")
}

pub(crate) async fn value(store: &NatsStore, name: &str) -> Option<Vec<u8>> {
    let entry = store.get(&key(name)).await.unwrap()?;
    Some(entry.value.to_vec())
}
