//! Which life of a store it is.

use std::fs;
use std::path::Path;

use divvy::store::file::FileStore;
use divvy::store::{
    Acquired, Expected, Heartbeat, KeyValue, Leases, Nonce, Notice, Prefix, SessionStart, Store,
    StoreErrorKind, StoreSettings, WorkerInfo,
};
use divvy_testbed::until;
use tokio::time::timeout;

use crate::scratch::{SOON, Scratch, claim, create, key, open, settings, worker};

fn with_quarantine() -> StoreSettings {
    StoreSettings {
        restart_quarantine: true,
        ..settings()
    }
}

#[tokio::test]
async fn the_incarnation_lasts_over_processes_that_come_and_go() {
    let scratch = Scratch::new();
    let first = scratch.open().await.incarnation().await.unwrap();
    let again = scratch.open().await.incarnation().await.unwrap();
    assert_eq!(first, again);
}

/// Verifies what a restart of the machine means, by a database that says that
/// it was last used before one: the clock began anew, so whatever it timed is
/// void; what is not timed stays.
#[tokio::test]
async fn another_boot_of_the_machine_voids_what_the_clock_timed() {
    let scratch = Scratch::new();
    let me = worker("w");
    let store = scratch.open().await;
    let before = store.incarnation().await.unwrap();
    let granted = store.acquire(&me, &[claim(1, 1)], SOON).await.unwrap();
    let [Acquired::Granted(token)] = granted[..] else {
        panic!("{granted:?}");
    };
    let (session, info) = (Nonce::new(5), WorkerInfo::default());
    let opened = store.open_session(&me, session, SOON).await.unwrap();
    assert_eq!(opened, SessionStart::Opened);
    let heartbeat = Heartbeat::new(session, info, SOON, SOON);
    let beaten = store.beat(&me, &heartbeat).await.unwrap();
    assert_eq!(beaten.tenure, divvy::store::Tenure::Current);
    store.mark_moved(&[claim(1, 1).key], SOON).await.unwrap();
    create(&store, "k", b"1").await;
    drop(store);

    date_back(&scratch.database());
    let store = open(&scratch.database(), &with_quarantine()).await.unwrap();
    assert_ne!(store.incarnation().await.unwrap(), before);
    assert_eq!(store.holders(&[claim(1, 1).key]).await.unwrap(), [None]);
    assert_eq!(store.members().await.unwrap(), []);
    assert_eq!(store.cooling(&[claim(1, 1).key]).await.unwrap(), [false]);
    // Whoever held it ended with the machine, so nobody has to wait.
    let granted = store.acquire(&me, &[claim(1, 2)], SOON).await.unwrap();
    assert!(matches!(granted[..], [Acquired::Granted(next)] if next > token));
    let opened = store.open_session(&me, Nonce::new(6), SOON).await.unwrap();
    assert_eq!(opened, SessionStart::Opened);
    assert_eq!(*store.get(&key("k")).await.unwrap().unwrap().value, *b"1");
}

#[tokio::test]
async fn a_copy_is_another_incarnation_and_waits_before_it_grants() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let granted = store.acquire(&worker("w"), &[claim(1, 1)], SOON).await;
    assert!(matches!(granted.unwrap()[..], [Acquired::Granted(_)]));
    let copy = scratch.directory().join("copy.db");
    fs::copy(scratch.database(), &copy).unwrap();
    fs::copy(
        scratch.beside("-wal"),
        scratch.directory().join("copy.db-wal"),
    )
    .unwrap();

    let copied = open(&copy, &with_quarantine()).await.unwrap();
    assert_ne!(
        copied.incarnation().await.unwrap(),
        store.incarnation().await.unwrap()
    );
    let wish = copied.acquire(&worker("v"), &[claim(2, 2)], SOON).await;
    // Leases may have been granted after the copy was made.
    assert_eq!(wish.unwrap(), [Acquired::Quarantined]);
    let mut heartbeat = Heartbeat::new(Nonce::new(1), WorkerInfo::default(), SOON, SOON);
    heartbeat.report.longest_lease = SOON;
    let begun = copied.beat(&worker("v"), &heartbeat).await.unwrap();
    heartbeat.report.waited = Some((begun.quarantine.id, SOON));
    let ended = copied.beat(&worker("v"), &heartbeat).await.unwrap();
    assert!(ended.quarantine.is_over);
    let wish = copied.acquire(&worker("v"), &[claim(2, 3)], SOON).await;
    assert!(matches!(wish.unwrap()[..], [Acquired::Granted(_)]));
}

/// Creates a key by a handle that has written nothing since its database was
/// replaced: the write was meant for the one that was here before.
async fn refused(store: &FileStore, name: &str) {
    let key = key(name);
    let lost = store.compare_and_set(&key, Expected::Absent, b"1").await;
    assert_eq!(lost.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert_eq!(store.get(&key).await.unwrap(), None);
}

/// Makes a database say that it was last used before a restart of the machine.
fn date_back(database: &Path) {
    let direct = rusqlite::Connection::open(database).unwrap();
    direct
        .execute("UPDATE life SET boot = 'the last one'", [])
        .unwrap();
    drop(direct);
    copy_log(database);
}

/// Makes a database's file complete without its log.
fn copy_log(database: &Path) {
    let direct = rusqlite::Connection::open(database).unwrap();
    direct
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
}

#[tokio::test]
async fn copy_from_before_a_restart_of_the_machine_waits_before_it_grants() {
    let scratch = Scratch::new();
    drop(scratch.open().await);
    date_back(&scratch.database());
    let copy = scratch.directory().join("copy.db");
    fs::copy(scratch.database(), &copy).unwrap();
    let store = open(&copy, &with_quarantine()).await.unwrap();
    let wish = store.acquire(&worker("w"), &[claim(1, 1)], SOON).await;
    // Others may hold leases of the file that it took the place of.
    assert_eq!(wish.unwrap(), [Acquired::Quarantined]);
}

#[tokio::test]
async fn file_that_is_put_back_waits_before_it_grants() {
    for is_of_an_earlier_boot in [false, true] {
        let scratch = Scratch::new();
        let away = scratch.directory().join("away.db");
        let first = scratch.open().await;
        let before = first.incarnation().await.unwrap();
        drop(first);
        copy_log(&scratch.database());
        fs::rename(scratch.database(), &away).unwrap();
        let store = open(&scratch.database(), &with_quarantine()).await.unwrap();
        if is_of_an_earlier_boot {
            date_back(&away);
        }
        fs::rename(&away, scratch.database()).unwrap();
        // The first write was meant for the database that was here before.
        let lost = store.acquire(&worker("w"), &[claim(1, 1)], SOON).await;
        assert_eq!(lost.unwrap_err().kind(), StoreErrorKind::Unavailable);
        let wish = store.acquire(&worker("w"), &[claim(1, 1)], SOON).await;
        assert_eq!(wish.unwrap(), [Acquired::Quarantined]);
        let after = store.incarnation().await.unwrap();
        assert_ne!(after, before);
        // Whoever opens it next finds it at home.
        let again = scratch.open().await.incarnation().await.unwrap();
        assert_eq!(again, after);
    }
}

/// Verifies that a database of the layout before, whose leases nobody knows the
/// lengths of, is waited for once.
#[tokio::test]
async fn a_database_of_an_earlier_version_waits_before_it_grants() {
    let scratch = Scratch::new();
    drop(scratch.open().await);
    let direct = rusqlite::Connection::open(scratch.database()).unwrap();
    direct
        .execute_batch("DROP TABLE quarantine; PRAGMA user_version = 2;")
        .unwrap();
    drop(direct);
    let store = open(&scratch.database(), &with_quarantine()).await.unwrap();
    let wish = store.acquire(&worker("w"), &[claim(1, 1)], SOON).await;
    assert_eq!(wish.unwrap(), [Acquired::Quarantined]);
}

#[tokio::test]
async fn a_new_file_waits_before_it_grants_unless_told_otherwise() {
    let scratch = Scratch::new();
    let store = open(&scratch.database(), &with_quarantine()).await.unwrap();
    let wish = store.acquire(&worker("w"), &[claim(1, 1)], SOON).await;
    assert_eq!(wish.unwrap(), [Acquired::Quarantined]);
    let store = scratch.open().await;
    let wish = store.acquire(&worker("w"), &[claim(1, 1)], SOON).await;
    assert!(matches!(wish.unwrap()[..], [Acquired::Granted(_)]));
}

/// Verifies that members of a deleted database find each other in the one that
/// is made in its place, whichever of its files were deleted.
#[tokio::test]
async fn a_deleted_database_is_left_for_the_one_that_follows_it() {
    for endings in [
        &["", "-wal", "-shm", "-next", "-turn", "-copy"][..],
        &["", "-wal", "-shm"],
        &[""],
    ] {
        let scratch = Scratch::new();
        let (one, two) = (scratch.open().await, scratch.open().await);
        let before = one.incarnation().await.unwrap();
        let mut watch = two.watch(&Prefix::ALL).await.unwrap();
        assert_eq!(watch.next().await.unwrap(), Notice::Current);
        let mut connection = two.connection();
        let connects = connection.borrow_and_update().connects;
        create(&one, "old", b"1").await;

        for ending in endings {
            // The last of them is not there before the log was first copied.
            let removed = fs::remove_file(scratch.beside(ending));
            assert!(removed.is_ok() || *ending == "-copy");
        }
        // Who only reads does not make it anew.
        let error = two.get(&key("old")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(!scratch.database().exists(), "{endings:?}");
        refused(&one, "first").await;
        create(&one, "first", b"1").await;
        assert_ne!(one.incarnation().await.unwrap(), before, "{endings:?}");
        assert_eq!(
            one.incarnation().await.unwrap(),
            two.incarnation().await.unwrap()
        );
        let again = connection.wait_for(|now| now.up && now.connects > connects);
        timeout(SOON, again)
            .await
            .expect("it is reached again")
            .unwrap();
        create(&one, "new", b"2").await;
        assert_eq!(two.get(&key("old")).await.unwrap(), None);
        until(SOON, "the watch sees the new key", async || {
            // It may first say that it could not list what was deleted.
            format!("{:?}", watch.next().await).contains("Key(new)")
        })
        .await;
    }
}

#[tokio::test]
async fn lost_locks_cost_neither_data_nor_watches() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.open().await, scratch.open().await);
    let before = one.incarnation().await.unwrap();
    fs::remove_file(scratch.beside("-turn")).unwrap();
    fs::remove_file(scratch.beside("-next")).unwrap();
    let mut watch = two.watch(&Prefix::ALL).await.unwrap();
    create(&one, "k", b"1").await;
    until(SOON, "the watch sees the key", async || {
        format!("{:?}", watch.next().await).contains("Key(k)")
    })
    .await;
    assert_eq!(two.incarnation().await.unwrap(), before);
}

/// Verifies what SQLite alone would get wrong: it takes a log for that of
/// whatever database it lies beside.
#[tokio::test]
async fn a_file_in_the_place_of_another_is_not_mixed_with_that_one_s_log() {
    let scratch = Scratch::new();
    let (store, other) = (scratch.open().await, scratch.open().await);
    create(&store, "kept", b"1").await;
    let backup = scratch.directory().join("backup.db");
    let direct = rusqlite::Connection::open(scratch.database()).unwrap();
    let name = backup.to_str().unwrap();
    direct.execute("VACUUM INTO ?", [name]).unwrap();
    drop(direct);
    create(&store, "later", b"2").await;
    let before = store.incarnation().await.unwrap();
    fs::rename(&backup, scratch.database()).unwrap();
    let connects = store.connects();
    assert!(store.get(&key("kept")).await.is_ok());
    assert!(store.connects() > connects, "it is known with the answer");
    for store in [&store, &other, &scratch.open().await] {
        let kept = store.get(&key("kept")).await.unwrap().unwrap();
        assert_eq!(*kept.value, *b"1");
        assert_eq!(store.get(&key("later")).await.unwrap(), None);
        assert_ne!(store.incarnation().await.unwrap(), before);
    }
    refused(&other, "anew").await;
    create(&other, "anew", b"3").await;
    assert!(store.get(&key("anew")).await.unwrap().is_some());
}
