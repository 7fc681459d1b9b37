//! Servers that stop, pause and come back, and networks that swallow.

use std::time::{Duration, Instant};

use divvy::manager::{EventKind, Manager, Settings, Shutdown, StaticSource};
use divvy::store::redis::RedisKeyValue;
use divvy::store::{
    Acquired, Expected, KeyValue, Leases, Outcome, Store, StoreErrorKind, StoreSettings, Tenure,
};
use divvy_testbed::{Proxy, RedisFlavour, RedisOptions, RedisServer, until, until_some};
use tokio::sync::mpsc;

use crate::bed::{
    LONG, SOON, claim, impatient, key, key_value, lease, leases, name, plain, redis, settings,
    take, try_leases,
};
use crate::raw::Raw;

/// A little more than an operation may take.
fn bound(settings: &StoreSettings) -> Duration {
    settings.operation_timeout + Duration::from_secs(2)
}

#[tokio::test]
async fn paused_server_is_noticed_and_nothing_hangs() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let settings = impatient();
        let store = try_leases(&server.url(), &settings).await.unwrap();
        let mine = claim(1);
        take(&store, "a", &mine).await;
        let connection = store.connection();
        server.pause();
        let started = Instant::now();
        let error = store.holders(&[lease(1)]).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(
            started.elapsed() < bound(&settings),
            "{:?}",
            started.elapsed()
        );
        until(SOON, "the pause is noticed", async || {
            !connection.borrow().up
        })
        .await;
        // From now on nobody waits.
        let error = store
            .renew(&name("a"), std::slice::from_ref(&mine), LONG)
            .await;
        assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Unavailable);
        server.resume();
        until(SOON, "it is reached again", async || connection.borrow().up).await;
        assert!(connection.borrow().connects >= 2);
        assert!(connection.borrow().lost_by.is_some());
        let renewed = store.renew(&name("a"), &[mine], LONG).await.unwrap();
        assert_eq!(renewed, [Tenure::Current]);
    }
}

#[tokio::test]
async fn write_that_timed_out_is_unknown_and_may_still_land() {
    let server = plain().await;
    let proxy = Proxy::start(server.address()).await;
    // Slow to notice, so that the held bytes are still this connection's.
    let settings = StoreSettings {
        ping_interval: Duration::from_secs(30),
        ..impatient()
    };
    let url = format!("redis://{}", proxy.address());
    let store = try_leases(&url, &settings).await.unwrap();
    let near = leases(&server.url()).await;
    let (worker, mine) = (name("a"), claim(1));
    // From now on the server knows the script.
    take(&near, "b", &claim(2)).await;
    proxy.hold();
    let error = store
        .acquire(&worker, std::slice::from_ref(&mine), LONG)
        .await;
    assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert_eq!(near.holders(&[lease(1)]).await.unwrap(), [None]);
    proxy.release();
    let holder = until_some(SOON, "the late acquire lands", async || {
        near.holders(&[lease(1)]).await.unwrap().remove(0)
    })
    .await;
    // It is known by its nonce, and renewed or released by that.
    assert_eq!(holder.fence.unwrap().1, mine.nonce);
    let renewed = store
        .renew(&worker, std::slice::from_ref(&mine), LONG)
        .await;
    assert_eq!(renewed.unwrap(), [Tenure::Current]);
}

#[tokio::test]
async fn lost_reply_is_unknown_and_the_nonce_tells_what_became_of_it() {
    let server = plain().await;
    let proxy = Proxy::start(server.address()).await;
    let url = format!("redis://{}", proxy.address());
    let store = try_leases(&url, &impatient()).await.unwrap();
    let records = RedisKeyValue::open(&url.parse().unwrap(), &impatient())
        .await
        .unwrap();
    let (worker, mine, record) = (name("a"), claim(1), key("a"));
    // From now on the server knows the scripts.
    take(&store, "b", &claim(2)).await;
    let written = records
        .compare_and_set(&key("b"), Expected::Absent, b"1")
        .await;
    written.unwrap().done().unwrap();
    proxy.hold_replies();
    let acquired = store.acquire(&worker, std::slice::from_ref(&mine), LONG);
    let written = records.compare_and_set(&record, Expected::Absent, b"1");
    let (acquired, written) = tokio::join!(acquired, written);
    assert_eq!(acquired.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert_eq!(written.unwrap_err().kind(), StoreErrorKind::Unknown);
    proxy.drop_held();
    let holder = until_some(SOON, "the store is reached", async || {
        store.holders(&[lease(1)]).await.ok()
    });
    let holder = holder.await.remove(0).unwrap();
    assert_eq!(
        (holder.worker.as_str(), holder.fence.unwrap().1),
        ("tests:a", mine.nonce)
    );
    let found = until_some(SOON, "the store is reached", async || {
        records.get(&record).await.ok()
    });
    assert_eq!(*found.await.unwrap().value, *b"1");
}

#[tokio::test]
async fn killed_server_is_unavailable_at_once_and_found_when_it_is_back() {
    let mut server = redis(RedisOptions::new().append_only()).await;
    let store = key_value(&server.url()).await;
    let written = store
        .compare_and_set(&key("a"), Expected::Absent, b"1")
        .await;
    let revision = written.unwrap().done().unwrap();
    let connection = store.connection();
    server.kill();
    until(SOON, "the loss is noticed", async || {
        !connection.borrow().up
    })
    .await;
    let started = Instant::now();
    for _ in 0..100 {
        let error = store.get(&key("a")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        let error = store
            .compare_and_set(&key("a"), Expected::At(revision), b"2")
            .await;
        assert_eq!(error.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    assert!(
        started.elapsed() < settings().operation_timeout,
        "callers waited"
    );
    server.start_again().await;
    until(SOON, "it is reached again", async || connection.borrow().up).await;
    let written = store
        .compare_and_set(&key("a"), Expected::At(revision), b"2")
        .await;
    assert!(matches!(written.unwrap(), Outcome::Done(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_increments_survive_crashes_in_the_middle() {
    let mut server = redis(RedisOptions::new().append_only()).await;
    let store = key_value(&server.url()).await;
    let counter = key("counter");
    let counting = tokio::spawn(async move {
        let (mut known, mut acknowledged) = (None, 0_u64);
        while acknowledged < 300 {
            let read = store.get(&counter).await;
            let Ok(entry) = read else {
                tokio::task::yield_now().await;
                continue;
            };
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
            let now = entry.as_ref().map_or(0, |entry| number(&entry.value));
            assert!(
                now >= acknowledged,
                "{acknowledged} was acknowledged, {now} is there"
            );
            let revision = entry.map(|entry| entry.revision);
            assert!(revision >= known, "revisions go back");
            let next = (now + 1).to_le_bytes();
            let written = store
                .compare_and_set(&counter, revision.into(), &next)
                .await;
            if let Ok(Outcome::Done(revision)) = written {
                (known, acknowledged) = (Some(revision), now + 1);
            }
        }
    });
    for _ in 0..3 {
        server.kill();
        server.start_again().await;
        let mut raw = Raw::of(&server);
        let before = raw.say(&["GET", "divvy:kv:tests:revision"]);
        until(SOON, "it is written to again", async || {
            counting.is_finished() || raw.say(&["GET", "divvy:kv:tests:revision"]) != before
        })
        .await;
    }
    counting.await.unwrap();
}

#[tokio::test]
async fn server_that_becomes_a_replica_is_unavailable_until_it_is_primary_again() {
    let (server, primary) = (plain().await, plain().await);
    let store = leases(&server.url()).await;
    let connection = store.connection();
    let mut raw = Raw::of(&server);
    raw.say(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let error = store
        .acquire(&name("a"), &[claim(1)], LONG)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    until(SOON, "the connection is given up", async || {
        !connection.borrow().up
    })
    .await;
    raw.say(&["REPLICAOF", "NO", "ONE"]);
    let granted = until_some(SOON, "it takes writes again", async || {
        store.acquire(&name("a"), &[claim(1)], LONG).await.ok()
    });
    assert!(matches!(granted.await[..], [Acquired::Granted(_)]));
}

#[tokio::test]
async fn server_that_came_back_unfit_says_so_until_it_is_mended() {
    let server = plain().await;
    let proxy = Proxy::start(server.address()).await;
    let records = key_value(&format!("redis://{}", proxy.address())).await;
    let mut raw = Raw::of(&server);
    raw.say(&["CONFIG", "SET", "maxmemory", "100mb"]);
    raw.say(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    proxy.reset();
    until(SOON, "the policy is found out", async || {
        let error = records.get(&key("a")).await.err();
        error.is_some_and(|error| error.kind() == StoreErrorKind::Unfit)
    })
    .await;
    raw.say(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    until(SOON, "it will do again", async || {
        records.get(&key("a")).await.is_ok()
    })
    .await;
}

/// A store whose server is asked again, whether it will do, every half a second.
fn watchful() -> StoreSettings {
    StoreSettings {
        ping_interval: Duration::from_millis(100),
        ..settings()
    }
}

#[tokio::test]
async fn no_lease_is_granted_while_the_server_may_evict_and_held_ones_are_renewed() {
    let server = plain().await;
    let proxy = Proxy::start(server.address()).await;
    let address = format!("redis://{}", proxy.address());
    let store = try_leases(&address, &watchful()).await.unwrap();
    let mine = claim(1);
    take(&store, "a", &mine).await;
    let mut raw = Raw::of(&server);
    raw.say(&["CONFIG", "SET", "maxmemory", "100mb"]);
    raw.say(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let refused = async || {
        let error = store
            .acquire(&name("b"), std::slice::from_ref(&mine), LONG)
            .await
            .err();
        error.is_some_and(|error| {
            error.kind() == StoreErrorKind::Unfit && error.to_string().contains("volatile-ttl")
        })
    };
    until(SOON, "the policy is found out", refused).await;
    // Also after the connection was lost.
    let connects = store.connection().borrow().connects;
    proxy.reset();
    until(SOON, "it is reached again", async || {
        let connection = store.connection();
        let connection = connection.borrow();
        connection.up && connection.connects > connects
    })
    .await;
    assert!(refused().await);
    let renewed = store
        .renew(&name("a"), std::slice::from_ref(&mine), LONG)
        .await;
    assert_eq!(renewed.unwrap(), [Tenure::Current]);
    // Nobody begins to use such a server.
    let error = try_leases(&server.url(), &watchful()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unfit, "{error}");
    raw.say(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let granted = until_some(SOON, "it will do again", async || {
        store.acquire(&name("b"), &[claim(2)], LONG).await.ok()
    });
    assert!(matches!(granted.await[..], [Acquired::Granted(_)]));
}

#[tokio::test]
async fn policy_that_evicts_changes_nothing_while_memory_has_no_bound() {
    let server = plain().await;
    let store = try_leases(&server.url(), &watchful()).await.unwrap();
    let mut raw = Raw::of(&server);
    raw.say(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let (begun, mut number) = (Instant::now(), 0);
    until(SOON, "it was asked several times", async || {
        number += 1;
        take(&store, "a", &claim(number)).await;
        begun.elapsed() > Duration::from_secs(2)
    })
    .await;
    assert_eq!(store.connection().borrow().connects, 1);
    try_leases(&server.url(), &watchful()).await.unwrap();
}

#[tokio::test]
async fn manager_names_what_makes_its_store_unfit_and_does_not_go_on_about_it() {
    let server = plain().await;
    let reach = StoreSettings {
        ping_interval: Duration::from_millis(100),
        ..settings()
    };
    let (teller, mut told) = mpsc::channel(10_000);
    let source = StaticSource::shards(["p"], 4).unwrap();
    let mut settings = Settings::fast();
    // A loaded machine holds up renewals for longer than a lease of `fast`.
    settings.leader.heartbeat_ttl = Duration::from_secs(2);
    settings.leader.leader_lease = Duration::from_secs(1);
    let manager = Manager::builder((server.url().parse().unwrap(), reach), source)
        .settings(settings)
        .events(teller)
        .start()
        .await
        .unwrap();
    until(SOON, "all are owned", async || {
        manager.current_assignment().partitions.len() == 4
    })
    .await;
    let mut raw = Raw::of(&server);
    raw.say(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let begun = Instant::now();
    until(SOON, "three leases' time has passed", async || {
        let owned = manager.current_assignment().partitions.len();
        assert_eq!(owned, 4, "nothing can be evicted while memory has no bound");
        begun.elapsed() > Duration::from_secs(6)
    })
    .await;
    raw.say(&["CONFIG", "SET", "maxmemory", "100mb"]);
    // Many renewals later.
    until(SOON, "work has stopped", async || {
        manager.current_assignment().partitions.is_empty()
    })
    .await;
    let mut errors = Vec::new();
    while let Ok(event) = told.try_recv() {
        if let EventKind::Error(error) = event.kind {
            errors.push(error.to_string());
        }
    }
    // That the connection is given up for it is told besides.
    let is_refusal = |error: &&String| error.starts_with("redis://");
    let refusals: Vec<&String> = errors.iter().filter(is_refusal).collect();
    assert!(
        matches!(refusals[..], [one] if one.contains("allkeys-lru")) && errors.len() < 6,
        "{errors:#?}"
    );
    raw.say(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    manager.stop(Shutdown::Leave).await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_running_when_a_store_is_dropped() {
    let server = plain().await;
    let mut raw = Raw::of(&server);
    {
        let (store, records) = (leases(&server.url()).await, key_value(&server.url()).await);
        let _notices = store.notices().await.unwrap();
        let _watch = records.watch(&divvy::store::Prefix::ALL).await.unwrap();
    }
    until(SOON, "all connections are gone", async || {
        let clients = raw.say(&["CLIENT", "LIST"]).text();
        clients.lines().count() == 1
    })
    .await;
}
