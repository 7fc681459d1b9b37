//! The bucket: made, checked, never edited.

use divvy::store::{Expected, KeyValue, Prefix, Store, StoreErrorKind, StoreSettings};
use divvy_testbed::{NatsCluster, NatsOptions, NatsServer, NatsVersion, until, until_some};
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::bed::{
    SOON, assert_refused, create, key, newest, open, refusal, settings, try_open, try_update,
    update, value,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_bucket_is_made_by_many_at_once() {
    // Each of them syncs the server's disk, which may be busy.
    let patient = StoreSettings {
        connect_timeout: SOON,
        operation_timeout: SOON / 2,
        ..settings()
    };
    for version in [NatsVersion::Lowest, NatsVersion::Newest] {
        let server = NatsServer::start(version, NatsOptions::new()).await;
        let opening: Vec<_> = (0..20)
            .map(|_| {
                let (url, patient) = (server.url(), patient.clone());
                tokio::spawn(async move { try_open(&url, &patient).await.unwrap() })
            })
            .collect();
        let mut seen = Vec::new();
        for opened in opening {
            seen.push(opened.await.unwrap().incarnation().await.unwrap());
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "all have the same bucket: {seen:?}");
    }
}

/// One wrong setting each, of the buckets b0, b1 and so on, with what must be
/// said of it.
fn wrong_settings() -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({"max_msgs_per_subject": 5}),
            "history (max_msgs_per_subject) is 5, must be 1",
        ),
        (
            json!({"max_msgs_per_subject": -1}),
            "history (max_msgs_per_subject) is -1, must be 1",
        ),
        (
            json!({"max_age": 60_000_000_000_u64}),
            "max_age is 60s, must be 0",
        ),
        (
            json!({"discard": "old"}),
            "discard is \"old\", must be \"new\"",
        ),
        (
            json!({"storage": "memory"}),
            "storage is \"memory\", must be \"file\"",
        ),
        (
            json!({"allow_direct": true}),
            "allow_direct is true, must be false",
        ),
        (
            json!({"retention": "workqueue"}),
            "retention is \"workqueue\", must be \"limits\"",
        ),
        (json!({"no_ack": true}), "no_ack is true, must be false"),
        (
            json!({"discard_new_per_subject": true}),
            "discard_new_per_subject is true, must be false",
        ),
        (
            json!({"subjects": ["$KV.b9.x.>"]}),
            "subjects is [\"$KV.b9.x.>\"], must be",
        ),
        (
            json!({"persist_mode": "async"}),
            "persist_mode is \"async\", must be \"default\"",
        ),
        (
            json!({"allow_msg_counter": true, "discard": "old"}),
            "allow_msg_counter is true, must be false",
        ),
        (
            json!({"subject_transform": {"src": "$KV.b12.a.>", "dest": "$KV.b12.b.>"}}),
            "subject_transform is true, must be false",
        ),
        (
            json!({"sources": [{"name": "other"}]}),
            "sources is 1, must be 0",
        ),
        (
            json!({"mirror": {"name": "other"}, "subjects": null}),
            "mirror is true, must be false",
        ),
    ]
}

#[tokio::test]
async fn a_bucket_that_could_lose_data_is_refused_by_the_name_of_its_field_and_not_edited() {
    let server = newest().await;
    let admin = Admin::of(&server).await;
    let other = json!({"name": "other", "subjects": ["other"], "storage": "file"});
    admin.ask("STREAM.CREATE.other", other).await;
    for (index, (changed, words)) in wrong_settings().into_iter().enumerate() {
        let bucket = format!("b{index}");
        admin.make_bucket(&bucket, changed).await;
        let before = admin.config(&bucket).await;
        let settings = StoreSettings {
            bucket: bucket.clone(),
            ..settings()
        };
        let error = refusal(&server.url(), &settings).await;
        assert_refused(
            &error,
            StoreErrorKind::Unfit,
            &[&bucket, words, "not edited"],
        );
        assert_eq!(admin.config(&bucket).await, before);
    }
}

#[tokio::test]
async fn a_bucket_with_another_number_of_replicas_is_refused() {
    let cluster = NatsCluster::start(NatsVersion::Newest, 3).await;
    let three = StoreSettings {
        replicas: 3,
        ..settings()
    };
    try_open(&cluster.url(), &three).await.unwrap();
    let error = refusal(&cluster.url(), &settings()).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["replicas is 3, must be 1"]);
    // Those who only look take it as it is.
    let looking = StoreSettings {
        create: false,
        ..settings()
    };
    let store = try_open(&cluster.url(), &looking).await.unwrap();
    assert!(
        store.describe().ends_with("replicas 3"),
        "{}",
        store.describe()
    );
}

#[tokio::test]
async fn a_bucket_of_an_operators_own_making_is_used_with_its_limits() {
    let server = newest().await;
    let admin = Admin::of(&server).await;
    let limits = json!({"max_msg_size": 4096, "max_bytes": 1 << 20, "deny_purge": true});
    admin.make_bucket("divvy", limits).await;
    let store = open(&server.url()).await;
    assert_eq!(store.value_bytes_max(), 2048);
    create(&store, "a", &[7; 2048]).await;
    assert_eq!(value(&store, "a").await.unwrap().len(), 2048);
}

#[tokio::test]
async fn a_new_bucket_keeps_one_value_for_ever_and_is_read_at_its_leader() {
    let server = newest().await;
    open(&server.url()).await;
    let config = Admin::of(&server).await.config("divvy").await;
    for (field, wanted) in [
        ("max_msgs_per_subject", json!(1)),
        ("max_age", json!(0)),
        ("discard", json!("new")),
        ("storage", json!("file")),
        ("allow_direct", json!(false)),
        ("allow_msg_ttl", json!(false)),
        ("num_replicas", json!(1)),
        ("max_consumers", json!(100_000)),
    ] {
        assert_eq!(config[field], wanted, "{field}: {config}");
    }
}

/// Fails once and is then made anew, without anything of before.
async fn assert_made_anew(store: &impl KeyValue, admin: &Admin) {
    admin.delete_bucket("divvy").await;
    let error = store.get(&key("a")).await.unwrap_err();
    assert_refused(
        &error,
        StoreErrorKind::Unavailable,
        &["get 'a'", "not found"],
    );
    assert!(store.get(&key("a")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_deleted_bucket_is_made_anew_with_another_incarnation_and_higher_revisions() {
    for version in [NatsVersion::Lowest, NatsVersion::Newest] {
        let server = NatsServer::start(version, NatsOptions::new()).await;
        let store = open(&server.url()).await;
        let admin = Admin::of(&server).await;
        let before = store.incarnation().await.unwrap();
        let first = create(&store, "a", b"1").await;
        assert_made_anew(&store, &admin).await;
        assert_ne!(store.incarnation().await.unwrap(), before);
        let stale = try_update(&store, "a", first, b"2").await;
        assert!(stale.unwrap().is_conflict());
        let again = create(&store, "a", b"3").await;
        assert!(again > first, "{again} is not above {first}");
    }
}

#[tokio::test]
async fn a_write_to_a_deleted_bucket_is_surely_not_done() {
    let server = newest().await;
    let store = open(&server.url()).await;
    let revision = create(&store, "a", b"1").await;
    Admin::of(&server).await.delete_bucket("divvy").await;
    let error = try_update(&store, "a", revision, b"2").await.unwrap_err();
    assert_refused(
        &error,
        StoreErrorKind::Unavailable,
        &["compare_and_set 'a'", "gone"],
    );
    let written = try_update(&store, "a", revision, b"2").await;
    assert!(written.unwrap().is_conflict());
}

#[tokio::test]
async fn an_unfit_bucket_in_place_of_a_deleted_one_is_refused() {
    let server = newest().await;
    let store = open(&server.url()).await;
    let admin = Admin::of(&server).await;
    admin.delete_bucket("divvy").await;
    admin
        .make_bucket("divvy", json!({"max_age": 1_000_000_000_u64}))
        .await;
    // As long as nothing fails, the exchange goes unnoticed, but a new
    // connection is looked at.
    let other = refusal(&server.url(), &settings()).await;
    assert_refused(&other, StoreErrorKind::Unfit, &["max_age is 1s"]);
    admin.delete_bucket("divvy").await;
    store.get(&key("a")).await.unwrap_err();
    admin
        .make_bucket("divvy", json!({"max_age": 1_000_000_000_u64}))
        .await;
    let error = store.get(&key("a")).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["max_age is 1s"]);
    admin.delete_bucket("divvy").await;
    until(SOON, "a good bucket again", async || {
        store.get(&key("a")).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn clusters_of_one_bucket_do_not_meet() {
    let server = newest().await;
    let of = async |cluster: &str| {
        let settings = StoreSettings {
            cluster: cluster.to_owned(),
            ..settings()
        };
        try_open(&server.url(), &settings).await.unwrap()
    };
    let (dotted, wild) = (of("a.b").await, of("*").await);
    let revision = create(&dotted, "k", b"1").await;
    assert_eq!(value(&wild, "k").await, None);
    update(&dotted, "k", revision, b"2").await;
    create(&wild, "k", b"3").await;
    let all = Prefix::ALL;
    assert_eq!(dotted.list(&all).await.unwrap().len(), 1);
    assert_eq!(wild.list(&all).await.unwrap()[0].value.as_ref(), b"3");
}

#[tokio::test]
async fn a_full_bucket_refuses_writes_and_loses_nothing() {
    let server = newest().await;
    let admin = Admin::of(&server).await;
    admin
        .make_bucket("divvy", json!({"max_bytes": 100_000}))
        .await;
    fill(&server).await;
}

#[tokio::test]
async fn a_full_server_refuses_writes_and_loses_nothing() {
    let options = NatsOptions::new().storage_bytes(1 << 20);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    fill(&server).await;
}

async fn fill(server: &NatsServer) {
    let store = open(&server.url()).await;
    let mut written = 0;
    let refused = until_some(SOON, "a refused write", async || {
        let name = format!("k{written}");
        let outcome = store
            .compare_and_set(&key(&name), Expected::Absent, &[7; 20_000])
            .await;
        written += usize::from(outcome.is_ok());
        outcome.err()
    });
    let error = refused.await;
    assert_refused(&error, StoreErrorKind::Unfit, &["the server says"]);
    let entries = store.list(&Prefix::ALL).await.unwrap();
    assert!(written >= 4, "{written}");
    assert_eq!(entries.len(), written);
    assert!(entries.iter().all(|entry| entry.value.len() == 20_000));
}

#[tokio::test]
async fn a_bucket_that_is_edited_while_in_use_is_refused_until_it_is_mended() {
    let server = newest().await;
    let store = open(&server.url()).await;
    create(&store, "a", b"1").await;
    let admin = Admin::of(&server).await;
    let edit = async |age: u64| {
        let mut config = admin.config("divvy").await;
        config["max_age"] = json!(age);
        // Not longer than a message may live.
        config["duplicate_window"] = json!(1_000_000_000);
        admin.ask("STREAM.UPDATE.KV_divvy", config).await;
    };
    edit(60_000_000_000).await;
    let words = ["bucket 'divvy'", "max_age is 60s, must be 0"];
    let error = store.incarnation().await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &words);
    let error = store.get(&key("a")).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &words);
    edit(0).await;
    assert_eq!(value(&store, "a").await.unwrap(), b"1");
    store.incarnation().await.unwrap();
}
