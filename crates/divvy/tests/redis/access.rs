//! The least that a user of the server must be allowed, and what becomes of
//! one with less.

use divvy::store::redis::{RedisKeyValue, RedisLeases};
use divvy::store::{Expected, Heartbeat, KeyValue, Leases, Prefix, StoreErrorKind, WorkerInfo};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer};

use crate::bed::{LONG, assert_refused, claim, key, name, nonce, redis, refusal, with_login};

/// Lease mode: as in docs/operating.md.
pub(crate) const LEASE_RULE: &str = "divvy-leases on >PASSWORD resetkeys resetchannels \
     ~lease:* ~moved:* ~node:* ~nodes:* ~cfg:workloads ~cfg:workload:* \
     ~divvy:t:* ~divvy:session:* ~divvy:info:* ~divvy:wishes:* ~divvy:moves:* ~divvy:created* \
     ~divvy:quarantine \
     &cfg:updates &divvy:released:* &divvy:members:* \
     -@all +ping +info +eval +evalsha +subscribe +publish +time +exists +get +getrange +set \
     +del +pexpire +pttl +sadd +srem +sismember +sscan +rpush +ltrim +lrange";

/// Leader mode: as in docs/operating.md.
pub(crate) const KEY_VALUE_RULE: &str = "divvy-records on >PASSWORD resetkeys resetchannels \
     ~divvy:kv:* ~divvy:created* &divvy:kv:* \
     -@all +ping +info +eval +evalsha +subscribe +publish +time +exists +get +getrange +set \
     +del +zadd +zrem +zrangebylex";

async fn server(flavour: RedisFlavour, rules: &[String]) -> RedisServer {
    let mut options = RedisOptions::new();
    for rule in rules {
        options = options.user(&rule.replace("PASSWORD", "s3cret"));
    }
    RedisServer::start(flavour, options).await
}

/// The rule without one of its words.
fn without(rule: &str, word: &str) -> String {
    let less: Vec<&str> = rule.split_whitespace().filter(|it| *it != word).collect();
    assert!(less.len() < rule.split_whitespace().count(), "no {word}");
    less.join(" ")
}

#[tokio::test]
async fn both_stores_work_on_valkey_under_the_least_privilege() {
    let rules = [LEASE_RULE.to_owned(), KEY_VALUE_RULE.to_owned()];
    let server = server(RedisFlavour::Valkey9, &rules).await;
    let url = server.url().parse().unwrap();
    let settings = with_login("divvy-leases", "s3cret");
    let store = RedisLeases::open(&url, &settings).await.unwrap();
    let mut heard = store.notices().await.unwrap();
    let (worker, session, wish) = (name("a"), nonce(), [claim(1)]);
    store.open_session(&worker, session, LONG).await.unwrap();
    let info = WorkerInfo::default();
    let beat = store
        .beat(&worker, &Heartbeat::new(session, info.clone(), LONG, LONG))
        .await;
    assert_eq!(beat.unwrap().tenure, divvy::store::Tenure::Current);
    store.acquire(&worker, &wish, LONG).await.unwrap();
    let renewed = store.renew(&worker, &wish, LONG).await.unwrap();
    assert_eq!(renewed, [divvy::store::Tenure::Current]);
    assert_eq!(store.members().await.unwrap().len(), 1);
    store.set_group(&name("orders"), "{}").await.unwrap();
    assert_eq!(store.groups().await.unwrap().len(), 1);
    store.log_moves(&["line".to_owned()]).await.unwrap();
    assert_eq!(store.moves().await.unwrap(), ["line"]);
    heard.next().await;
    let settings = with_login("divvy-records", "s3cret");
    let store = RedisKeyValue::open(&url, &settings).await.unwrap();
    let written = store
        .compare_and_set(&key("a"), Expected::Absent, b"1")
        .await;
    let revision = written.unwrap().done().unwrap();
    assert_eq!(store.list(&Prefix::ALL).await.unwrap().len(), 1);
    store.watch(&Prefix::ALL).await.unwrap();
    assert!(
        store
            .delete(&key("a"), revision)
            .await
            .unwrap()
            .done()
            .is_some()
    );
}

#[tokio::test]
async fn every_word_of_the_templates_is_needed() {
    let server = redis(RedisOptions::new()).await;
    let mut raw = crate::raw::Raw::of(&server);
    let url = server.url().parse().unwrap();
    // Subscribing is asked for later; a group's or worker's keys are unknown at the start.
    let later = [
        "+subscribe",
        "&cfg:updates",
        "&divvy:released:*",
        "~cfg:workload:*",
    ];
    let modes = [
        ("divvy-leases", LEASE_RULE),
        ("divvy-records", KEY_VALUE_RULE),
    ];
    for (user, rule) in modes {
        let words = rule.split_whitespace().filter(|word| word.starts_with('+'));
        for word in words.filter(|word| !later.contains(word) && *word != "+ping") {
            let less = without(rule, word).replace("PASSWORD", "s3cret");
            let setting: Vec<&str> = ["ACL", "SETUSER", user, "reset"]
                .into_iter()
                .chain(less.split_whitespace().skip(1))
                .collect();
            raw.say(&setting);
            let settings = with_login(user, "s3cret");
            let error = match user {
                "divvy-leases" => RedisLeases::open(&url, &settings).await.map(drop),
                _ => RedisKeyValue::open(&url, &settings).await.map(drop),
            };
            let error = error.expect_err(word);
            assert_refused(&error, StoreErrorKind::Unfit, &["access rules forbid"]);
        }
    }
}

#[tokio::test]
async fn user_without_the_key_of_the_quarantine_is_refused_by_what_to_add() {
    for flavour in RedisFlavour::ALL {
        let rule = without(LEASE_RULE, "~divvy:quarantine");
        let rules = [
            rule.clone(),
            rule.replace("divvy-leases", "reader") + " %R~divvy:quarantine",
        ];
        let server = server(flavour, &rules).await;
        let url = server.url().parse().unwrap();
        for user in ["divvy-leases", "reader"] {
            let opened = RedisLeases::open(&url, &with_login(user, "s3cret")).await;
            let text = format!(
                "user '{user}' may not access key 'divvy:quarantine': add ~divvy:quarantine to its \
                 ACL (docs/operating.md)"
            );
            assert_refused(&opened.unwrap_err(), StoreErrorKind::Unfit, &[&text]);
        }
    }
}

#[tokio::test]
async fn missing_right_to_subscribe_is_said_when_it_is_needed() {
    let rules = [
        without(LEASE_RULE, "&cfg:updates"),
        without(KEY_VALUE_RULE, "+subscribe"),
    ];
    let server = server(RedisFlavour::Redis7, &rules).await;
    let url = server.url().parse().unwrap();
    let leases = RedisLeases::open(&url, &with_login("divvy-leases", "s3cret")).await;
    let error = leases.unwrap().notices().await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["subscribe", "cfg:updates"]);
    let records = RedisKeyValue::open(&url, &with_login("divvy-records", "s3cret")).await;
    let error = records.unwrap().watch(&Prefix::ALL).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["subscribe"]);
}

#[tokio::test]
async fn key_of_a_foreign_application_is_out_of_reach() {
    let server = server(RedisFlavour::Redis7, &[LEASE_RULE.to_owned()]).await;
    let settings = with_login("divvy-leases", "s3cret");
    let url = server.url().parse().unwrap();
    RedisLeases::open(&url, &settings).await.unwrap();
    let mut raw = crate::raw::Raw::of(&server);
    raw.say(&["AUTH", "divvy-leases", "s3cret"]);
    for command in [
        &["GET", "session:1"][..],
        &["KEYS", "*"],
        &["FLUSHALL"],
        &["CONFIG", "GET", "*"],
    ] {
        let crate::raw::Reply::Error(error) = raw.say(command) else {
            panic!("{command:?} is allowed");
        };
        assert!(error.starts_with("NOPERM"), "{error}");
    }
}

#[tokio::test]
async fn user_without_any_rights_is_refused_clearly() {
    let server = server(RedisFlavour::Redis7, &["idle on >PASSWORD".to_owned()]).await;
    let error = refusal(&server.url(), &with_login("idle", "s3cret")).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["access rules forbid INFO"]);
}

#[test]
fn the_guide_has_the_templates_that_are_tested() {
    let guide = include_str!("../../../../docs/operating.md");
    for rule in [LEASE_RULE, KEY_VALUE_RULE] {
        assert!(guide.contains(&format!("\nuser {rule}\n")), "{rule}");
    }
}
