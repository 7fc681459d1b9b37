//! Restarts, lost data, and the quarantine after them.

use std::time::Duration;

use divvy::store::redis::RedisLeases;
use divvy::store::{
    Acquired, Claim, Expected, Incarnation, KeyValue, Leases, Store, StoreSettings, Tenure,
};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, until, until_some};

use crate::bed::{
    LONG, SOON, claim, key, key_value, leases, name, plain, redis, settings, take, try_leases,
};
use crate::raw::Raw;

/// The incarnation, as soon as the store is reached.
async fn incarnation(store: &dyn Store) -> Incarnation {
    until_some(SOON, "the store is reached", async || {
        store.incarnation().await.ok()
    })
    .await
}

#[tokio::test]
async fn incarnation_changes_with_every_start_and_with_every_loss() {
    let mut server = redis(RedisOptions::new().append_only()).await;
    let url = server.url();
    let (store, records) = (leases(&url).await, key_value(&url).await);
    let stores: [&dyn Store; 2] = [&store, &records];
    for store in stores {
        let first = incarnation(store).await;
        assert_eq!(incarnation(store).await, first);
        Raw::of(&server).say(&["FLUSHALL"]);
        let emptied = incarnation(store).await;
        assert_ne!(emptied, first);
        server.stop().await;
        server.start_again().await;
        let restarted = incarnation(store).await;
        assert_ne!(restarted, emptied);
        server.kill();
        server.start_empty().await;
        assert_ne!(incarnation(store).await, restarted);
    }
    // All clients of one life agree.
    let other = leases(&url).await;
    assert_eq!(incarnation(&other).await, incarnation(&store).await);
}

#[tokio::test]
async fn acknowledged_writes_survive_a_crash_with_an_append_only_file() {
    let mut server = redis(RedisOptions::new().append_only()).await;
    let (store, records) = (leases(&server.url()).await, key_value(&server.url()).await);
    let mine = claim(1);
    take(&store, "a", &mine).await;
    let written = records
        .compare_and_set(&key("a"), Expected::Absent, b"1")
        .await;
    let revision = written.unwrap().done().unwrap();
    server.kill();
    server.start_again().await;
    let renewed = until_some(SOON, "the store is reached", async || {
        store
            .renew(&name("a"), std::slice::from_ref(&mine), LONG)
            .await
            .ok()
    });
    assert_eq!(renewed.await, [Tenure::Current]);
    let entry = until_some(SOON, "the store is reached", async || {
        records.get(&key("a")).await.ok()
    });
    assert_eq!(entry.await.unwrap().revision, revision);
}

#[tokio::test]
async fn revisions_and_tokens_go_on_above_what_was_forgotten() {
    let mut server = plain().await;
    let (store, records) = (leases(&server.url()).await, key_value(&server.url()).await);
    let (mine, again) = (claim(1), claim(1));
    let token = take(&store, "a", &mine).await;
    let written = records
        .compare_and_set(&key("a"), Expected::Absent, b"1")
        .await;
    let revision = written.unwrap().done().unwrap();
    server.kill();
    server.start_empty().await;
    until(SOON, "the stores are reached", async || {
        store.incarnation().await.is_ok() && records.incarnation().await.is_ok()
    })
    .await;
    assert!(take(&store, "a", &again).await > token);
    let written = records
        .compare_and_set(&key("a"), Expected::Absent, b"2")
        .await;
    assert!(written.unwrap().done().unwrap() > revision);
}

fn quarantined() -> StoreSettings {
    StoreSettings {
        restart_quarantine: true,
        ..settings()
    }
}

async fn try_to_take(store: &RedisLeases, ttl: Duration) -> Acquired {
    let taken = store.acquire(&name("a"), &[claim(1)], ttl).await;
    taken.unwrap().remove(0)
}

#[tokio::test]
async fn nobody_gets_a_lease_before_the_leases_of_an_earlier_life_have_ended() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let started = std::time::Instant::now();
        let store = try_leases(&server.url(), &quarantined()).await.unwrap();
        match try_to_take(&store, LONG).await {
            Acquired::Quarantined(left) => {
                assert!(left <= LONG + Duration::from_secs(1), "{left:?}");
                assert!(left > LONG - Duration::from_secs(20), "{left:?}");
            }
            other => panic!("{other:?}"),
        }
        let ttl = Duration::from_millis(700);
        until(SOON, "the quarantine is over", async || {
            matches!(try_to_take(&store, ttl).await, Acquired::Granted(_))
        })
        .await;
        // The server started a little before it was known to have.
        assert!(started.elapsed() + Duration::from_millis(500) > ttl);
    }
}

#[tokio::test]
async fn restart_begins_a_quarantine_that_keeps_what_is_held() {
    let mut server = redis(RedisOptions::new().append_only()).await;
    let free = leases(&server.url()).await;
    let store = try_leases(&server.url(), &quarantined()).await.unwrap();
    let mine = claim(1);
    take(&free, "a", &mine).await;
    server.kill();
    server.start_again().await;
    until(SOON, "the store is reached", async || {
        store.incarnation().await.is_ok()
    })
    .await;
    let worker = name("a");
    let renewed = store
        .renew(&worker, std::slice::from_ref(&mine), LONG)
        .await;
    assert_eq!(renewed.unwrap(), [Tenure::Current]);
    let wishes: Vec<Claim> = vec![claim(1), claim(2)];
    let taken = store.acquire(&worker, &wishes, LONG).await.unwrap();
    assert_eq!(taken[0], Acquired::Held);
    assert!(matches!(taken[1], Acquired::Quarantined(_)), "{taken:?}");
}

#[tokio::test]
async fn server_that_restarts_in_place_is_in_quarantine_too() {
    let server = redis(RedisOptions::new().extra("enable-debug-command yes")).await;
    let store = try_leases(&server.url(), &quarantined()).await.unwrap();
    let before = incarnation(&store).await;
    let ttl = Duration::from_millis(100);
    until(SOON, "the quarantine is over", async || {
        matches!(try_to_take(&store, ttl).await, Acquired::Granted(_))
    })
    .await;
    // It answers nothing: the process goes on as another program.
    let mut connection = std::os::unix::net::UnixStream::connect(server.socket()).unwrap();
    std::io::Write::write_all(&mut connection, b"DEBUG RESTART\r\n").unwrap();
    until(SOON, "it has restarted", async || {
        store.incarnation().await.is_ok_and(|now| now != before)
    })
    .await;
    assert!(matches!(
        try_to_take(&store, LONG).await,
        Acquired::Quarantined(_)
    ));
}
