//! Stores of the tests, with short timings.

use std::time::Duration;

use divvy::store::redis::{RedisKeyValue, RedisLeases};
use divvy::store::{
    Acquired, Claim, Credentials, Heartbeat, Key, LeaseKey, LeaseName, Leases, Nonce, Secret,
    SecretSource, StoreError, StoreErrorKind, StoreSettings, Token, WorkerInfo,
};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer};

/// Longer than anything takes.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn settings() -> StoreSettings {
    StoreSettings {
        cluster: "tests".to_owned(),
        connect_timeout: Duration::from_secs(10),
        operation_timeout: Duration::from_secs(10),
        reconnect_delay_max: Duration::from_millis(100),
        ping_interval: Duration::from_secs(1),
        restart_quarantine: false,
        ..StoreSettings::default()
    }
}

/// Settings that give up soon, but not while a busy machine only takes its
/// time.
pub(crate) fn impatient() -> StoreSettings {
    StoreSettings {
        connect_timeout: Duration::from_secs(2),
        operation_timeout: Duration::from_secs(2),
        ..settings()
    }
}

pub(crate) fn with_login(user: &str, password: &str) -> StoreSettings {
    StoreSettings {
        credentials: Credentials {
            user: Some(user.to_owned()),
            password: Some(SecretSource::Given(Secret::new(password))),
            ..Credentials::default()
        },
        ..settings()
    }
}

pub(crate) async fn redis(options: RedisOptions) -> RedisServer {
    RedisServer::start(RedisFlavour::Redis7, options).await
}

pub(crate) async fn plain() -> RedisServer {
    redis(RedisOptions::new()).await
}

pub(crate) async fn try_leases(
    url: &str,
    settings: &StoreSettings,
) -> Result<RedisLeases, StoreError> {
    RedisLeases::open(&url.parse().unwrap(), settings).await
}

pub(crate) async fn leases(url: &str) -> RedisLeases {
    try_leases(url, &settings()).await.unwrap()
}

pub(crate) async fn key_value(url: &str) -> RedisKeyValue {
    let opened = RedisKeyValue::open(&url.parse().unwrap(), &settings()).await;
    opened.unwrap()
}

/// Why neither store can be opened, which must be known within the bound.
pub(crate) async fn refusal(url: &str, settings: &StoreSettings) -> StoreError {
    let bound = settings.connect_timeout + Duration::from_secs(5);
    let url = url.parse().unwrap();
    let opening = tokio::time::timeout(bound, RedisKeyValue::open(&url, settings));
    let first = opening.await.expect("opening ends in time").unwrap_err();
    let opening = tokio::time::timeout(bound, RedisLeases::open(&url, settings));
    let second = opening.await.expect("opening ends in time").unwrap_err();
    assert_eq!(first.kind(), second.kind(), "{first}, {second}");
    second
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

pub(crate) fn name(text: &str) -> LeaseName {
    LeaseName::new("name", text).unwrap()
}

pub(crate) fn lease(number: u32) -> LeaseKey {
    LeaseKey::new("orders", number).unwrap()
}

pub(crate) fn nonce() -> Nonce {
    Nonce::new(fastrand::u128(..))
}

pub(crate) fn claim(number: u32) -> Claim {
    Claim {
        key: lease(number),
        nonce: nonce(),
    }
}

/// Ends the quarantine of a store, as a worker does that has waited for so long.
pub(crate) async fn end_quarantine(store: &RedisLeases, longest_lease: Duration) {
    let mut heartbeat = Heartbeat::new(nonce(), WorkerInfo::default(), LONG, LONG);
    heartbeat.report.longest_lease = longest_lease;
    let begun = store.beat(&name("waiting"), &heartbeat).await.unwrap();
    heartbeat.report.waited = Some((begun.quarantine.id, longest_lease));
    let ended = store.beat(&name("waiting"), &heartbeat).await.unwrap();
    assert!(ended.quarantine.is_over, "{ended:?}");
}

/// Takes a lease that nobody holds.
pub(crate) async fn take(store: &RedisLeases, worker: &str, claim: &Claim) -> Token {
    let taken = store
        .acquire(&name(worker), std::slice::from_ref(claim), LONG)
        .await;
    match taken.unwrap()[..] {
        [Acquired::Granted(token)] => token,
        ref other => panic!("{other:?}"),
    }
}
