//! Restarts, lost data, and the quarantine after them.

use std::time::Duration;

use divvy::store::redis::RedisLeases;
use divvy::store::{
    Acquired, Claim, Expected, Heartbeat, Incarnation, KeyValue, Leases, Store, StoreSettings,
    Tenure, WorkerInfo,
};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer, until, until_some};

use crate::bed::{
    LONG, SOON, claim, end_quarantine, key, key_value, leases, name, nonce, plain, redis, settings,
    take, try_leases,
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
        let connects = store.connects();
        server.stop().await;
        server.start_again().await;
        let restarted = incarnation(store).await;
        assert_ne!(restarted, emptied);
        assert!(store.connects() > connects, "it is known with the answer");
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

/// A member that reports that it has waited for less than the longest lease, by
/// any clock but its own, changes nothing: neither how long the server is up
/// nor its clock counts.
#[tokio::test]
async fn nobody_gets_a_lease_before_a_worker_has_waited_for_the_longest_one() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let store = try_leases(&server.url(), &quarantined()).await.unwrap();
        let short = Duration::from_millis(20);
        assert_eq!(try_to_take(&store, short).await, Acquired::Quarantined);
        let mut heartbeat = Heartbeat::new(nonce(), WorkerInfo::default(), LONG, LONG);
        heartbeat.report.longest_lease = LONG;
        let begun = store.beat(&name("a"), &heartbeat).await.unwrap();
        assert_eq!(begun.tenure, Tenure::Over, "it has no session");
        assert_eq!(begun.quarantine.longest_lease, LONG);
        let almost = LONG - Duration::from_millis(1);
        for waited in [short, almost] {
            heartbeat.report.waited = Some((begun.quarantine.id.clone(), waited));
            let found = store.beat(&name("a"), &heartbeat).await.unwrap();
            assert!(!found.quarantine.is_over, "{found:?}");
            assert_eq!(try_to_take(&store, short).await, Acquired::Quarantined);
        }
        heartbeat.report.waited = Some((begun.quarantine.id.clone(), LONG));
        let found = store.beat(&name("a"), &heartbeat).await.unwrap();
        assert!(found.quarantine.is_over, "{found:?}");
        let taken = try_to_take(&store, short).await;
        assert!(matches!(taken, Acquired::Granted(_)), "{taken:?}");
    }
}

#[tokio::test]
async fn quarantine_that_somebody_overwrote_or_deleted_begins_again() {
    let server = plain().await;
    let store = try_leases(&server.url(), &quarantined()).await.unwrap();
    let mut raw = Raw::of(&server);
    let (short, run) = (Duration::from_millis(20), "a".repeat(40));
    let spoilt = [
        "garbage".to_owned(),
        String::new(),
        "x".repeat(1 << 20),
        format!("{run} ab 20 open"),
        format!("{run} ab 99999999999999999999 open"),
    ];
    for text in &spoilt {
        end_quarantine(&store, short).await;
        raw.set("divvy:quarantine", text);
        assert_eq!(try_to_take(&store, short).await, Acquired::Quarantined);
    }
    end_quarantine(&store, short).await;
    raw.say(&["DEL", "divvy:quarantine"]);
    raw.say(&["RPUSH", "divvy:quarantine", "a list"]);
    assert_eq!(try_to_take(&store, short).await, Acquired::Quarantined);
    end_quarantine(&store, short).await;
    raw.say(&["DEL", "divvy:quarantine"]);
    assert_eq!(try_to_take(&store, short).await, Acquired::Quarantined);
    end_quarantine(&store, short).await;
    let taken = try_to_take(&store, short).await;
    assert!(matches!(taken, Acquired::Granted(_)), "{taken:?}");
}

#[tokio::test]
async fn restart_begins_a_quarantine_that_keeps_what_is_held() {
    let mut server = redis(RedisOptions::new().append_only()).await;
    let free = leases(&server.url()).await;
    let store = try_leases(&server.url(), &quarantined()).await.unwrap();
    let mine = claim(1);
    end_quarantine(&store, LONG).await;
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
    assert_eq!(taken[1], Acquired::Quarantined);
}

#[tokio::test]
async fn server_that_restarts_in_place_is_in_quarantine_too() {
    let server = redis(RedisOptions::new().extra("enable-debug-command yes")).await;
    let store = try_leases(&server.url(), &quarantined()).await.unwrap();
    let before = incarnation(&store).await;
    let ttl = Duration::from_millis(100);
    end_quarantine(&store, ttl).await;
    let taken = try_to_take(&store, ttl).await;
    assert!(matches!(taken, Acquired::Granted(_)), "{taken:?}");
    // It answers nothing: the process goes on as another program.
    let mut connection = std::os::unix::net::UnixStream::connect(server.socket()).unwrap();
    std::io::Write::write_all(&mut connection, b"DEBUG RESTART\r\n").unwrap();
    until(SOON, "it has restarted", async || {
        store.incarnation().await.is_ok_and(|now| now != before)
    })
    .await;
    assert_eq!(try_to_take(&store, LONG).await, Acquired::Quarantined);
}

fn replication(server: &mut Raw) -> String {
    server.say(&["INFO", "replication"]).text()
}

/// A primary whose only new life is that of its data: its process goes on, and
/// so does the data of another server that copied it and was copied back.
#[tokio::test]
async fn primary_that_went_back_to_a_copy_is_another_incarnation_in_quarantine() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let store = try_leases(&server.url(), &quarantined()).await.unwrap();
        let records = key_value(&server.url()).await;
        end_quarantine(&store, LONG).await;
        let before = incarnation(&records).await;

        let options = RedisOptions::new().replica_of(server.address());
        let copy = RedisServer::start(flavour, options).await;
        let (mut first, mut second) = (Raw::of(&server), Raw::of(&copy));
        let is_copied = |text: String| text.contains("master_link_status:up");
        until(SOON, "the copy is made", async || {
            is_copied(replication(&mut second))
        })
        .await;
        // A primary that gets its first replica has forgotten nothing.
        assert_eq!(incarnation(&records).await, before);
        take(&store, "a", &claim(1)).await;

        second.say(&["REPLICAOF", "NO", "ONE"]);
        let forgotten = claim(2);
        take(&store, "a", &forgotten).await;
        let port = copy.port().to_string();
        first.say(&["REPLICAOF", "127.0.0.1", &port]);
        until(SOON, "the copy is copied back", async || {
            is_copied(replication(&mut first))
        })
        .await;
        first.say(&["REPLICAOF", "NO", "ONE"]);
        let other = claim(2);
        let wish = until_some(SOON, "the store is reached", async || {
            let wish = std::slice::from_ref(&other);
            store.acquire(&name("b"), wish, LONG).await.ok()
        });
        assert_eq!(wish.await, [Acquired::Quarantined], "{flavour:?}");
        assert_ne!(incarnation(&records).await, before, "{flavour:?}");
        assert_ne!(incarnation(&store).await, before, "{flavour:?}");

        // It is the same for everybody, and ends like any other.
        let after = incarnation(&key_value(&server.url()).await).await;
        assert_eq!(incarnation(&records).await, after);
        end_quarantine(&store, LONG).await;
        take(&store, "b", &other).await;
    }
}
