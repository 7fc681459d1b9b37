//! Keys that somebody else has spoilt.

use divvy::lease::{GROUP_BYTES_MAX, Group};
use divvy::store::{
    Acquired, Claim, Expected, Heartbeat, Holder, KeyValue, Leases, Outcome, Prefix, SessionStart,
    StoreErrorKind, Tenure,
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
    // What another client wrote without a time to live never expires.
    let endless: Vec<_> = holders.iter().flatten().map(Holder::is_endless).collect();
    assert_eq!(endless, [true, true, true, true, false, false]);
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
    let opened = store.open_session(&worker, session, LONG).await.unwrap();
    assert_eq!(opened, SessionStart::Opened);
    for spoilt in [
        "garbage",
        "",
        &"x".repeat(1 << 20),
        &"g".repeat(32),
        &nonce().to_string(),
    ] {
        // None of them expires, as every session does.
        raw.set("divvy:session:tests:a", spoilt);
        let opened = store.open_session(&worker, session, LONG).await.unwrap();
        assert_eq!(opened, SessionStart::Opened, "{spoilt:.40}");
    }
    let again = store.open_session(&worker, nonce(), LONG).await.unwrap();
    assert!(matches!(again, SessionStart::Taken(_)), "{again:?}");
    raw.say(&["RPUSH", "node:tests:a", "a list"]);
    raw.say(&["RPUSH", "divvy:info:tests:a", "a list"]);
    let info = divvy::store::WorkerInfo::default();
    let beat = store
        .beat(&worker, &Heartbeat::new(session, info.clone(), LONG, LONG))
        .await;
    assert_eq!(beat.unwrap().tenure, Tenure::Current);
    assert_eq!(raw.get("node:tests:a").unwrap(), "tests|tests:a");
    // A description that is there and cannot be read is not nothing.
    for spoilt in ["SET", "RPUSH"] {
        raw.say(&["DEL", "divvy:info:tests:a"]);
        raw.say(&[spoilt, "divvy:info:tests:a", ""]);
        let members = store.members().await.unwrap();
        assert_eq!(members[0].info.as_deref(), Some("no text"), "{spoilt}");
    }
    raw.say(&["DEL", "divvy:info:tests:a"]);
    assert_eq!(store.members().await.unwrap()[0].info, None);
    raw.say_bytes(&[b"SET", b"divvy:info:tests:a", b"\xff"]);
    assert_eq!(
        store.members().await.unwrap()[0].info.as_deref(),
        Some("\u{fffd}")
    );
}

#[tokio::test]
async fn spoilt_set_of_all_workers_does_not_hide_those_of_a_cluster() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    let (worker, session) = (name("a"), nonce());
    store.open_session(&worker, session, LONG).await.unwrap();
    let info = divvy::store::WorkerInfo::default();
    let heartbeat = Heartbeat::new(session, info, LONG, LONG);
    raw.set("nodes:all", "no set");
    for spoilt in ["nodes:all", "nodes:tests"] {
        let beat = store.beat(&worker, &heartbeat).await.unwrap();
        assert_eq!(beat.tenure, Tenure::Current);
        let members = store.members().await.unwrap();
        assert_eq!(members.len(), 1, "{members:?}");
        raw.say(&["DEL", spoilt]);
        raw.set("nodes:tests", "no set");
    }
    raw.say(&["DEL", "nodes:all"]);
    raw.set("nodes:all", "no set");
    let error = store.members().await.unwrap_err();
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["'nodes:tests'", "another type"],
    );
    assert_eq!(
        store.leave(&worker, session).await.unwrap(),
        Tenure::Current
    );
}

#[tokio::test]
async fn refusals_for_a_key_of_another_type_name_it() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    raw.set("cfg:workloads", "no set");
    let error = store.groups().await.unwrap_err();
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["'cfg:workloads'", "another type"],
    );
    let error = store.set_group(&name("orders"), "{}").await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["'cfg:workloads'"]);
    let error = store.remove_group(&name("orders")).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["'cfg:workloads'"]);
    raw.say(&["RPUSH", "divvy:wishes:tests", "a list"]);
    // Members go on with what they last knew.
    let wishes = store.wishes().await.unwrap().unwrap();
    assert!(wishes.contains("'divvy:wishes:tests'"), "{wishes}");
    let error = store.set_wishes(None, "{}").await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["'divvy:wishes:tests'"]);
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

/// A record of another program in one key: every reader sees it at the same
/// revision, and it can be replaced there.
#[tokio::test]
async fn spoilt_record_harms_no_other_and_can_be_replaced() {
    let server = plain().await;
    let (store, other) = (
        key_value(&server.url()).await,
        key_value(&server.url()).await,
    );
    let mut raw = Raw::of(&server);
    let names = ["bad", "empty", "good", "list", "zero"];
    let mut last = None;
    for text in names {
        let name = key(text);
        let written = store.compare_and_set(&name, Expected::Absent, b"1");
        last = written.await.unwrap().done();
    }
    raw.set("divvy:kv:tests:v:bad", "garbage");
    raw.set("divvy:kv:tests:v:empty", "");
    raw.set("divvy:kv:tests:v:zero", "0 what no revision is");
    raw.say(&["DEL", "divvy:kv:tests:v:list"]);
    raw.say(&["RPUSH", "divvy:kv:tests:v:list", "a list"]);
    raw.say(&[
        "ZADD",
        "divvy:kv:tests:index",
        "0",
        "gone",
        "0",
        "not a key!",
    ]);
    let entries = store.list(&Prefix::ALL).await.unwrap();
    let found: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(found, names);
    assert_eq!(other.list(&Prefix::ALL).await.unwrap(), entries);
    assert_eq!(&*entries[0].value, b"garbage");
    assert_eq!(&*entries[2].value, b"1");
    for entry in &entries {
        assert_eq!(other.get(&entry.key).await.unwrap().as_ref(), Some(entry));
        let created = store.compare_and_set(&entry.key, Expected::Absent, b"2");
        assert_eq!(created.await.unwrap(), Outcome::Conflict);
        if entry.key != key("good") {
            assert!(Some(entry.revision) > last, "{entry:?}");
        }
        let at = Expected::At(entry.revision);
        let replaced = other.compare_and_set(&entry.key, at, b"2").await.unwrap();
        assert!(replaced.done().is_some(), "{entry:?}");
    }
    // Read alone, without a listing before.
    raw.set("divvy:kv:tests:v:bad", "garbage");
    let alone = store.get(&key("bad")).await.unwrap().unwrap();
    let deleted = store.delete(&key("bad"), alone.revision).await.unwrap();
    assert!(deleted.done().is_some());
    assert_eq!(store.get(&key("bad")).await.unwrap(), None);
    // What all revisions come from is everybody's.
    raw.set("divvy:kv:tests:revision", "garbage");
    let error = store
        .compare_and_set(&key("new"), Expected::Absent, b"1")
        .await;
    let named = ["divvy:kv:tests:revision"];
    assert_refused(&error.unwrap_err(), StoreErrorKind::Unfit, &named);
    assert_eq!(store.get(&key("new")).await.unwrap(), None);
    raw.say(&["DEL", "divvy:kv:tests:index"]);
    raw.set("divvy:kv:tests:index", "no index");
    let error = store.list(&Prefix::ALL).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["'divvy:kv:tests:index'"]);
}

/// What a stranger wrote may begin like a revision, but not like one that the
/// store has given out.
#[tokio::test]
async fn record_with_a_revision_that_was_never_given_out_is_a_strangers() {
    let server = plain().await;
    let store = key_value(&server.url()).await;
    let mut raw = Raw::of(&server);
    let name = key("a");
    let text = "9007199254740991 of a stranger";
    for is_listed in [false, true] {
        let written = store.compare_and_set(&name, Expected::Absent, b"1");
        let last = written.await.unwrap().done().unwrap();
        raw.set("divvy:kv:tests:v:a", text);
        let found = match is_listed {
            true => store.list(&Prefix::ALL).await.unwrap().remove(0),
            false => store.get(&name).await.unwrap().unwrap(),
        };
        assert_eq!(&*found.value, text.as_bytes());
        assert!(found.revision > last, "{found:?}");
        assert!(found.revision.get() < 9_007_199_254_740_991, "{found:?}");
        let deleted = store.delete(&name, found.revision).await.unwrap();
        assert!(deleted.done() > Some(found.revision));
    }
    // Without the last revision nothing is known of any: records stay as they are.
    let written = store.compare_and_set(&name, Expected::Absent, b"1");
    let last = written.await.unwrap().done().unwrap();
    raw.say(&["DEL", "divvy:kv:tests:revision"]);
    let found = store.get(&name).await.unwrap().unwrap();
    assert_eq!((&*found.value, found.revision), (&b"1"[..], last));
    assert_eq!(store.list(&Prefix::ALL).await.unwrap(), [found]);
}
