//! Much at a time, and servers that are full.

use std::time::Instant;

use divvy::store::{
    Acquired, Claim, Expected, Heartbeat, Key, KeyValue, Leases, Prefix, StoreErrorKind, Tenure,
    WorkerInfo,
};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, until, until_some};

use crate::bed::{
    LONG, SOON, assert_refused, claim, key, key_value, leases, name, nonce, plain, redis, refusal,
    settings, take,
};
use crate::raw::Raw;

#[tokio::test]
async fn ten_thousand_leases_are_renewed_in_one_batch() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let worker = name("a");
    let claims: Vec<Claim> = (0..10_000).map(claim).collect();
    let granted = store.acquire(&worker, &claims, LONG).await.unwrap();
    assert!(granted.iter().all(|it| matches!(it, Acquired::Granted(_))));
    let mut raw = Raw::of(&server);
    for lost in [0, 249, 250, 9_999] {
        raw.say(&["DEL", &format!("lease:orders:{lost}")]);
    }
    let started = Instant::now();
    let renewed = store.renew(&worker, &claims, LONG).await.unwrap();
    println!("10,000 renewals took {:?}", started.elapsed());
    let over = renewed
        .iter()
        .enumerate()
        .filter(|(_, it)| **it == Tenure::Over);
    let over: Vec<_> = over.map(|(at, _)| at).collect();
    assert_eq!(over, [0, 249, 250, 9_999]);
}

#[tokio::test]
async fn listing_goes_over_many_pages_by_count_and_by_bytes() {
    let server = plain().await;
    let store = key_value(&server.url()).await;
    let parent = key("many");
    for number in 0..2_100 {
        let key = Key::new(["many", &format!("{number:04}")]).unwrap();
        let written = store.compare_and_set(&key, Expected::Absent, b"x").await;
        written.unwrap().done().unwrap();
    }
    let large = vec![7; store.value_bytes_max()];
    for number in 0..40 {
        let key = Key::new(["large", &number.to_string()]).unwrap();
        let written = store.compare_and_set(&key, Expected::Absent, &large).await;
        written.unwrap().done().unwrap();
    }
    let many = store.list(&Prefix::below(parent)).await.unwrap();
    assert_eq!(many.len(), 2_100);
    assert!(many.is_sorted_by(|one, two| one.key < two.key));
    assert_eq!(
        store
            .list(&Prefix::below(key("large")))
            .await
            .unwrap()
            .len(),
        40
    );
    assert_eq!(store.list(&Prefix::ALL).await.unwrap().len(), 2_140);
}

#[tokio::test]
async fn full_memory_refuses_what_is_new_and_loses_nothing() {
    let server = redis(RedisOptions::new().max_memory(100 << 20, "noeviction")).await;
    let (store, records) = (leases(&server.url()).await, key_value(&server.url()).await);
    let (worker, session, info) = (name("a"), nonce(), WorkerInfo::default());
    store.open_session(&worker, session, LONG).await.unwrap();
    let beat = store
        .beat(&worker, &Heartbeat::new(session, info.clone(), LONG, LONG))
        .await;
    assert_eq!(beat.unwrap().tenure, Tenure::Current);
    let mine = claim(1);
    take(&store, "a", &mine).await;
    let written = records
        .compare_and_set(&key("a"), Expected::Absent, b"kept")
        .await;
    let revision = written.unwrap().done().unwrap();
    let mut raw = Raw::of(&server);
    raw.say(&["CONFIG", "SET", "maxmemory", "1"]);

    let error = store.acquire(&worker, &[claim(2)], LONG).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["memory is full"]);
    let error = records
        .compare_and_set(&key("b"), Expected::Absent, b"new")
        .await;
    assert_refused(
        &error.unwrap_err(),
        StoreErrorKind::Unfit,
        &["memory is full"],
    );
    let error = records
        .compare_and_set(&key("a"), Expected::At(revision), b"new")
        .await;
    assert_refused(
        &error.unwrap_err(),
        StoreErrorKind::Unfit,
        &["memory is full"],
    );
    let error = store.set_group(&name("orders"), "{}").await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["memory is full"]);
    assert_eq!(raw.get("lease:orders:2"), None);
    assert_eq!(raw.get("divvy:t:{lease:orders:2}"), None);

    let renewed = store
        .renew(&worker, std::slice::from_ref(&mine), LONG)
        .await;
    assert_eq!(renewed.unwrap(), [Tenure::Current]);
    let beat = store
        .beat(&worker, &Heartbeat::new(session, info.clone(), LONG, LONG))
        .await;
    assert_eq!(beat.unwrap().tenure, Tenure::Current);
    let kept = records.get(&key("a")).await.unwrap().unwrap();
    assert_eq!((&*kept.value, kept.revision), (&b"kept"[..], revision));
    assert_eq!(records.list(&Prefix::ALL).await.unwrap().len(), 1);
    assert_eq!(store.members().await.unwrap().len(), 1);

    raw.say(&["CONFIG", "SET", "maxmemory", "100mb"]);
    take(&store, "a", &claim(2)).await;
}

#[tokio::test]
async fn server_that_cannot_save_refuses_writes_and_still_reads() {
    let saving = "dbfilename blocked.rdb\nsave 3600 1";
    let server = redis(RedisOptions::new().extra(saving)).await;
    let (store, records) = (leases(&server.url()).await, key_value(&server.url()).await);
    let mine = claim(1);
    take(&store, "a", &mine).await;
    let mut raw = Raw::of(&server);
    // A directory in the way of the file that it saves to.
    std::fs::create_dir(server.directory().join("data/blocked.rdb")).unwrap();
    raw.say(&["BGSAVE"]);
    until(SOON, "saving has failed", async || {
        let info = raw.say(&["INFO", "persistence"]).text();
        info.contains("rdb_last_bgsave_status:err")
    })
    .await;
    let error = store
        .acquire(&name("a"), &[claim(2)], LONG)
        .await
        .unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["save to its disk"]);
    let error = records
        .compare_and_set(&key("a"), Expected::Absent, b"1")
        .await;
    assert_refused(
        &error.unwrap_err(),
        StoreErrorKind::Unfit,
        &["save to its disk"],
    );
    assert!(store.holders(&[mine.key]).await.unwrap()[0].is_some());
}

#[tokio::test]
async fn full_disk_refuses_writes_until_there_is_room_and_loses_nothing() {
    for flavour in RedisFlavour::ALL {
        let options = RedisOptions::new().append_only_synced("everysec");
        let mut server = RedisServer::start(flavour, options).await;
        let records = key_value(&server.url()).await;
        server.fill_disk(Some(300_000));
        let mut written = 0;
        let error = until_some(SOON, "a refused write", async || {
            let name = key(&format!("k{written}"));
            let writing = records.compare_and_set(&name, Expected::Absent, &[7; 20_000]);
            let outcome = writing.await;
            written += usize::from(outcome.is_ok());
            outcome.err()
        });
        assert_refused(&error.await, StoreErrorKind::Unfit, &["to its disk"]);
        assert!(written > 5, "{written}");
        assert_eq!(records.list(&Prefix::ALL).await.unwrap().len(), written);

        server.fill_disk(None);
        until(SOON, "there is room", async || {
            let name = key("room");
            let writing = records.compare_and_set(&name, Expected::Absent, b"1");
            writing.await.is_ok()
        })
        .await;
        server.stop().await;
        server.start_again().await;
        let found = until_some(SOON, "it is reached again", async || {
            records.list(&Prefix::ALL).await.ok()
        });
        assert_eq!(found.await.len(), written + 1);
    }
}

#[tokio::test]
async fn server_that_may_evict_is_refused_by_the_policy_s_name() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let server = redis(RedisOptions::new().max_memory(100 << 20, policy)).await;
        let error = refusal(&server.url(), &settings()).await;
        assert_refused(&error, StoreErrorKind::Unfit, &[policy, "noeviction"]);
    }
}
