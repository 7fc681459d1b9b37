//! Keys that somebody else has spoilt.

use divvy::lease::{GROUP_BYTES_MAX, Group};
use divvy::store::{
    Acquired, Claim, Expected, KeyValue, Leases, Outcome, Prefix, SessionStart, StoreErrorKind,
    Tenure,
};

use crate::bed::{
    LONG, assert_refused, claim, key, key_value, lease, leases, name, nonce, plain, take,
};
use crate::raw::Raw;

#[tokio::test]
async fn spoilt_lease_is_held_by_nobody_known_and_the_others_go_on() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    raw.say(&["RPUSH", "lease:orders:0", "a list"]);
    raw.say_bytes(&[b"SET", b"lease:orders:1", b"\xff\x00\xfe"]);
    raw.set("lease:orders:2", &"x".repeat(8 << 20));
    raw.set("lease:orders:3", "");
    let claims: Vec<Claim> = (0..6).map(claim).collect();
    let worker = name("a");
    let taken = store.acquire(&worker, &claims, LONG).await.unwrap();
    assert_eq!(taken[..4], vec![Acquired::Held; 4]);
    assert!(
        taken[4..]
            .iter()
            .all(|it| matches!(it, Acquired::Granted(_)))
    );
    let expected = [vec![Tenure::Over; 4], vec![Tenure::Current; 2]].concat();
    assert_eq!(store.renew(&worker, &claims, LONG).await.unwrap(), expected);
    let keys: Vec<_> = claims.iter().map(|claim| claim.key.clone()).collect();
    let holders = store.holders(&keys).await.unwrap();
    let workers: Vec<_> = holders
        .iter()
        .map(|it| it.as_ref().unwrap().worker.as_str())
        .collect();
    assert_eq!(workers[..2], ["", "\u{fffd}\0\u{fffd}"]);
    assert_eq!(workers[2].len(), 1024);
    assert_eq!(workers[3..], ["", "tests:a", "tests:a"]);
    assert_eq!(store.release(&worker, &claims).await.unwrap(), expected);
    assert_eq!(raw.get("lease:orders:3").unwrap(), "");
}

#[tokio::test]
async fn lease_whose_fence_cannot_be_read_is_not_granted() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    let nonce_text = nonce().to_string();
    let spoilt = [
        "garbage".to_owned(),
        "-5 ab".to_owned(),
        "1e300 ab".to_owned(),
        format!("9007199254740992 {nonce_text}"),
        format!("99999999999999999999 {nonce_text}"),
        "x".repeat(1 << 20),
    ];
    for (number, record) in spoilt.iter().enumerate() {
        raw.set(&format!("divvy:t:{{lease:orders:{number}}}"), record);
    }
    raw.say(&["RPUSH", "divvy:t:{lease:orders:6}", "a list"]);
    let claims: Vec<Claim> = (0..8).map(claim).collect();
    let worker = name("a");
    let taken = store.acquire(&worker, &claims, LONG).await.unwrap();
    assert_eq!(taken[..7], vec![Acquired::Held; 7]);
    assert!(matches!(taken[7], Acquired::Granted(_)));
    assert_eq!(raw.get("lease:orders:0"), None);
    // Spoilt while it is held: the tenure cannot be proved, and is over.
    raw.set("divvy:t:{lease:orders:7}", "garbage");
    let mine = std::slice::from_ref(&claims[7]);
    assert_eq!(
        store.renew(&worker, mine, LONG).await.unwrap(),
        [Tenure::Over]
    );
    let held = store.holders(&[lease(7)]).await.unwrap().remove(0).unwrap();
    assert_eq!(held.fence, None);
}

#[tokio::test]
async fn tokens_go_on_above_a_large_one_without_rounding() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    let last = 9_007_199_254_740_000_i64;
    raw.set("divvy:t:{lease:orders:1}", &format!("{last} {}", nonce()));
    for step in 1..=3 {
        let mine = claim(1);
        assert_eq!(take(&store, "a", &mine).await.get(), last + step);
        store.release(&name("a"), &[mine]).await.unwrap();
    }
}

#[tokio::test]
async fn spoilt_keys_of_workers_are_written_over_or_refused() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    let (worker, session) = (name("a"), nonce());
    raw.say(&["RPUSH", "divvy:session:tests:a", "a list"]);
    let taken = store.open_session(&worker, session, LONG).await.unwrap();
    assert!(matches!(taken, SessionStart::Taken(_)), "{taken:?}");
    raw.say(&["DEL", "divvy:session:tests:a"]);
    store.open_session(&worker, session, LONG).await.unwrap();
    raw.say(&["RPUSH", "node:tests:a", "a list"]);
    raw.say(&["RPUSH", "divvy:info:tests:a", "a list"]);
    let info = divvy::store::WorkerInfo::default();
    let beat = store.beat(&worker, session, &info, LONG, LONG).await;
    assert_eq!(beat.unwrap(), Tenure::Current);
    assert_eq!(raw.get("node:tests:a").unwrap(), "tests|tests:a");
    raw.say_bytes(&[b"SET", b"divvy:info:tests:a", b"\xff"]);
    assert_eq!(
        store.members().await.unwrap()[0].info.as_deref(),
        Some("\u{fffd}")
    );
    raw.say(&["DEL", "nodes:all"]);
    raw.set("nodes:all", "no set");
    let error = store.members().await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["another type"]);
}

#[tokio::test]
async fn spoilt_document_does_not_hide_other_groups() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    for group in ["good", "huge", "list"] {
        raw.say(&["SADD", "cfg:workloads", group]);
    }
    raw.say_bytes(&[b"SADD", b"cfg:workloads", b"\xff"]);
    raw.set("cfg:workload:good", "{}");
    raw.set("cfg:workload:huge", &"x".repeat(8 << 20));
    raw.say(&["RPUSH", "cfg:workload:list", "a list"]);
    let groups = store.groups().await.unwrap();
    let shown: Vec<_> = groups
        .iter()
        .map(|it| (it.name.as_str(), it.json.as_deref()))
        .collect();
    // One that is too long comes cut, and is known for it.
    let (huge, others): (Vec<_>, Vec<_>) = shown.into_iter().partition(|it| it.0 == "huge");
    assert_eq!(others, [("good", Some("{}")), ("list", None)]);
    let cut = huge[0].1.unwrap();
    assert_eq!(cut.len(), GROUP_BYTES_MAX + 1);
    let error = Group::from_json("huge", cut).unwrap_err().to_string();
    assert!(error.contains("at most 65536 bytes"), "{error}");
}

#[tokio::test]
async fn spoilt_record_is_an_error_and_is_never_written_over() {
    let server = plain().await;
    let store = key_value(&server.url()).await;
    let mut raw = Raw::of(&server);
    let written = store
        .compare_and_set(&key("good"), Expected::Absent, b"1")
        .await;
    written.unwrap().done().unwrap();
    raw.set("divvy:kv:tests:v:bad", "garbage");
    raw.say(&["RPUSH", "divvy:kv:tests:v:list", "a list"]);
    for spoilt in ["bad", "list"] {
        let error = store.get(&key(spoilt)).await.unwrap_err();
        assert_refused(&error, StoreErrorKind::Unfit, &[]);
        let outcome = store
            .compare_and_set(&key(spoilt), Expected::Absent, b"1")
            .await;
        assert_eq!(outcome.unwrap(), Outcome::Conflict);
    }
    assert_eq!(store.list(&Prefix::ALL).await.unwrap().len(), 1);
    raw.say(&["ZADD", "divvy:kv:tests:index", "0", "gone", "0", "bad"]);
    let error = store.list(&Prefix::ALL).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["'bad'"]);
    raw.say(&["ZREM", "divvy:kv:tests:index", "bad"]);
    assert_eq!(store.list(&Prefix::ALL).await.unwrap().len(), 1);
    raw.set("divvy:kv:tests:revision", "garbage");
    let error = store
        .compare_and_set(&key("new"), Expected::Absent, b"1")
        .await;
    assert_refused(&error.unwrap_err(), StoreErrorKind::Unfit, &["revision"]);
    assert_eq!(store.get(&key("new")).await.unwrap(), None);
}
