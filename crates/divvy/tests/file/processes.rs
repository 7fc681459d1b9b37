//! Several processes on one database, some of which are killed.

use std::time::Duration;

use divvy::store::{
    Acquired, Change, Expected, KeyValue, LeaseNotice, Leases, Notice, Prefix, Store,
    StoreSettings, Watch,
};
use divvy_testbed::{until, until_some};
use tokio::time::timeout;

use crate::part::{COUNTED_EACH, FILLED_BYTES, LEASE_TTL, Part, number};
use crate::scratch::{SOON, Scratch, claim, create, key, open, put, settings, worker};

#[tokio::test]
async fn sixteen_processes_count_without_losing_one() {
    let scratch = Scratch::new();
    let mut parts: Vec<Part> = (0..16)
        .map(|_| Part::start("count", &scratch.database()))
        .collect();
    for part in &parts {
        assert_eq!(part.says(), "ready");
    }
    parts.iter_mut().for_each(Part::cue);
    for part in &parts {
        assert!(part.says_until_it_ends().is_empty());
    }
    let entry = scratch.open().await.get(&key("count")).await.unwrap();
    assert_eq!(number(&entry.unwrap().value), 16 * COUNTED_EACH);
}

/// Verifies that a kill in the middle of writes tears nothing, loses nothing
/// that was acknowledged, and keeps nobody waiting.
#[tokio::test]
async fn killed_writers_leave_whole_values_and_no_lock() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut seen = 0;
    for round in 0..25 {
        let mut parts = [(); 2].map(|()| Part::start("fill", &scratch.database()));
        let acknowledged: u64 = parts[round % 2].says().parse().unwrap();
        // A further one or two, so that the kill comes at another point.
        for _ in 0..round % 3 {
            parts[round % 2].says();
        }
        parts.iter_mut().for_each(Part::kill);
        let entry = store.get(&key("filled")).await.unwrap().unwrap();
        assert!(entry.value.iter().all(|byte| *byte == entry.value[0]));
        assert_eq!(entry.value.len(), FILLED_BYTES);
        assert!(entry.revision.get() >= acknowledged.max(seen));
        let mine = vec![0; FILLED_BYTES];
        let revision = put(&store, "filled", Expected::At(entry.revision), &mine).await;
        seen = revision.get();
    }
    let direct = rusqlite::Connection::open(scratch.database()).unwrap();
    let sound: String = direct
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}

#[tokio::test]
async fn leases_of_a_killed_process_run_out_and_not_before() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut part = Part::start("lease", &scratch.database());
    assert!(part.says().contains("Granted"));
    let first = store.holders(&[claim(1, 0).key]).await.unwrap();
    let (token, _) = first[0].as_ref().unwrap().fence.unwrap();
    part.kill();
    let killed = boottime();
    let me = worker("heir");
    let mut nonce = 10;
    let granted = until_some(SOON, "the lease runs out", async || {
        nonce += 1;
        let wish = [claim(1, nonce)];
        match store.acquire(&me, &wish, SOON).await.unwrap()[0] {
            Acquired::Granted(token) => Some(token),
            Acquired::Held => None,
            Acquired::Quarantined => panic!("the database is not new"),
        }
    })
    .await;
    assert!(granted > token);
    // Its last renewal was at most one renewal old when it was killed; the
    // lease cannot have run out before that renewal's end.
    let direct = rusqlite::Connection::open(scratch.database()).unwrap();
    let other: i64 = direct
        .query_row("SELECT expires FROM lease WHERE number = 2", [], |row| {
            row.get(0)
        })
        .unwrap();
    let other = Duration::from_nanos(other.try_into().unwrap());
    assert!(boottime() >= other, "both were renewed together");
    assert!(other <= killed + LEASE_TTL);
}

fn boottime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        time.tv_sec.try_into().unwrap(),
        time.tv_nsec.try_into().unwrap(),
    )
}

/// The next value that a watch shows.
async fn shown(watch: &mut Watch) -> Vec<u8> {
    loop {
        let next = timeout(SOON, watch.next()).await.expect("a notice comes");
        if let Notice::Changed(Change::Put(entry)) = next.unwrap() {
            return entry.value.to_vec();
        }
    }
}

/// The settings look for changes by themselves once a minute only, so what is
/// seen earlier was heard of.
#[tokio::test]
async fn a_watch_sees_the_changes_of_another_process() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut watch = store.watch(&Prefix::ALL).await.unwrap();
    let mut part = Part::start("write", &scratch.database());
    assert_eq!(part.says(), "ready");
    part.cue();
    assert_eq!(shown(&mut watch).await, b"go");
    part.kill();
    let mut part = Part::start("write", &scratch.database());
    assert_eq!(part.says(), "ready");
    part.cue();
    assert_eq!(shown(&mut watch).await, b"go");
}

#[tokio::test]
async fn a_watch_sees_the_last_change_of_a_process_that_died_before_it_could_tell() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut watch = store.watch(&Prefix::ALL).await.unwrap();
    assert_eq!(watch.next().await.unwrap(), Notice::Current);
    let mut part = Part::start("commit in silence", &scratch.database());
    assert_eq!(part.says(), "committed");
    part.kill();
    assert_eq!(shown(&mut watch).await, b"oo");
}

#[tokio::test]
async fn a_watch_that_fell_behind_lists_everything() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut watch = store.watch(&Prefix::ALL).await.unwrap();
    assert_eq!(watch.next().await.unwrap(), Notice::Current);
    // More changes than are kept, in one transaction, and one that is no
    // longer in the log.
    let direct = rusqlite::Connection::open(scratch.database()).unwrap();
    direct
        .execute_batch(
            "BEGIN;
             INSERT INTO entry VALUES ('default', 'early', 1, x'01');
             INSERT INTO log (id, kind, cluster, subject) VALUES (9999, 1, 'default', 'late');
             INSERT INTO entry VALUES ('default', 'late', 9999, x'02');
             COMMIT;",
        )
        .unwrap();
    let other = scratch.open().await;
    create(&other, "last", b"3").await;
    let mut values = Vec::new();
    while values.len() < 3 {
        values.extend(shown(&mut watch).await);
    }
    values.sort_unstable();
    assert_eq!(values, [1, 2, b'3']);
}

#[tokio::test]
async fn a_release_of_another_client_is_noticed() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.open().await, scratch.open().await);
    let mut notices = two.notices().await.unwrap();
    let (me, claims) = (worker("w"), [claim(7, 1)]);
    one.acquire(&me, &claims, SOON).await.unwrap();
    one.release(&me, &claims).await.unwrap().clear();
    let notice = timeout(SOON, notices.next()).await.expect("a notice comes");
    assert_eq!(notice, LeaseNotice::Released(claims[0].key.clone()));
}

#[tokio::test]
async fn a_batch_of_many_turns_is_answered_in_its_order() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut notices = store.notices().await.unwrap();
    let me = worker("w");
    let claims: Vec<_> = (0..2500).map(|n| claim(n, u128::from(n))).collect();
    let middle = [claim(1234, 99_999)];
    store.acquire(&worker("v"), &middle, SOON).await.unwrap();
    let granted = store.acquire(&me, &claims, SOON).await.unwrap();
    let held = granted.iter().enumerate();
    let held: Vec<_> = held
        .filter(|(_, acquired)| **acquired == Acquired::Held)
        .map(|(at, _)| at)
        .collect();
    assert_eq!((granted.len(), held), (2500, vec![1234]));
    store.release(&me, &claims).await.unwrap().clear();
    let notice = timeout(SOON, notices.next()).await.expect("a notice comes");
    assert_eq!(notice, LeaseNotice::Resync, "too many to tell one by one");
}

/// Verifies that the log is copied and starts over while a process writes
/// without pause, so that it cannot fill the disk.
#[tokio::test]
async fn the_log_stays_short_under_constant_writing() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut last = Expected::Absent;
    // 100 MB in all, each page another than before.
    for byte in (0..200).chain(0..200) {
        let value = vec![byte; 250_000];
        last = Expected::At(put(&store, "big", last, &value).await);
    }
    let log = std::fs::metadata(scratch.beside("-wal")).unwrap().len();
    assert!(log < 40_000_000, "the log has {log} bytes");
}

#[tokio::test]
async fn clusters_share_a_file_and_see_only_their_own_keys() {
    let scratch = Scratch::new();
    let one = scratch.open().await;
    let other = StoreSettings {
        cluster: "other".to_owned(),
        ..settings()
    };
    let two = open(&scratch.database(), &other).await.unwrap();
    create(&one, "k", b"1").await;
    assert_eq!(two.get(&key("k")).await.unwrap(), None);
    assert_eq!(two.list(&Prefix::ALL).await.unwrap(), []);
    create(&two, "k", b"2").await;
    assert_eq!(*one.get(&key("k")).await.unwrap().unwrap().value, *b"1");
    assert_eq!(
        one.incarnation().await.unwrap(),
        two.incarnation().await.unwrap()
    );
}

#[tokio::test]
async fn a_dropped_store_leaves_no_thread() {
    let scratch = Scratch::new();
    let part = Part::start("open", &scratch.database());
    assert_eq!(part.says(), "opened");
    let store = scratch.open().await;
    let watch = store.watch(&Prefix::ALL).await.unwrap();
    let ours = || {
        let names = std::fs::read_dir("/proc/self/fd").unwrap();
        let targets = names.filter_map(|name| std::fs::read_link(name.unwrap().path()).ok());
        targets
            .filter(|target| target.starts_with(scratch.directory()))
            .count()
    };
    assert!(ours() > 0);
    drop((store, watch));
    until(SOON, "every file of the store is closed", async || {
        ours() == 0
    })
    .await;
}
