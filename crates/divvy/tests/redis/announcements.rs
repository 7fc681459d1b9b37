//! What is told, on which channel, and what happens when it is not heard.

use divvy::store::redis::RedisKeyValue;
use divvy::store::{
    Change, Expected, KeyValue, LeaseNotice, Leases, Notice, Prefix, StoreSettings, Watch,
};
use divvy_testbed::{Proxy, RedisFlavour, RedisOptions, RedisServer, Switch};
use tokio::time::timeout;

use crate::bed::{SOON, claim, key, key_value, leases, name, plain, settings, take};
use crate::raw::{Raw, Reply};

async fn next(watch: &mut Watch) -> Notice {
    loop {
        let heard = timeout(SOON, watch.next()).await.expect("a notice comes");
        if let Ok(notice) = heard {
            return notice;
        }
    }
}

/// Waits for a change of this key to this value.
async fn until_seen(watch: &mut Watch, name: &str, value: &[u8]) {
    loop {
        if let Notice::Changed(Change::Put(entry)) = next(watch).await
            && entry.key == key(name)
            && *entry.value == *value
        {
            return;
        }
    }
}

#[tokio::test]
async fn group_is_announced_by_its_bare_name_on_the_shared_channel() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    raw.say(&["SUBSCRIBE", "cfg:updates"]);
    store.set_group(&name("orders"), "{}").await.unwrap();
    let expected = ["message", "cfg:updates", "orders"].map(|word| Reply::Bytes(word.into()));
    assert_eq!(raw.next(), Reply::Array(expected.to_vec()));
    store.remove_group(&name("orders")).await.unwrap();
    assert_eq!(raw.next(), Reply::Array(expected.to_vec()));
}

#[tokio::test]
async fn group_that_a_foreign_agent_announces_is_heard() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut heard = store.notices().await.unwrap();
    let mut raw = Raw::of(&server);
    let oversize = "x".repeat(300);
    raw.say(&["PUBLISH", "cfg:updates", &oversize]);
    raw.say_bytes(&[b"PUBLISH", b"cfg:updates", b"\xff\xfe"]);
    raw.say(&[
        "PUBLISH",
        "divvy:released:0",
        "nonsense\n:\nx:y\norders:99999999999",
    ]);
    raw.say(&["PUBLISH", "cfg:updates", "orders"]);
    let notice = timeout(SOON, heard.next()).await.unwrap();
    assert_eq!(notice, LeaseNotice::Group("orders".to_owned()));
}

#[tokio::test]
async fn databases_of_one_server_do_not_hear_each_other() {
    let server = plain().await;
    let (zero, one) = (server.url(), format!("{}/1", server.url()));
    let (here, there) = (key_value(&zero).await, key_value(&one).await);
    let mut watch = here.watch(&Prefix::ALL).await.unwrap();
    assert_eq!(next(&mut watch).await, Notice::Current);
    let written = there
        .compare_and_set(&key("a"), Expected::Absent, b"there")
        .await;
    written.unwrap().done().unwrap();
    let written = here
        .compare_and_set(&key("b"), Expected::Absent, b"here")
        .await;
    written.unwrap().done().unwrap();
    let Notice::Changed(change) = next(&mut watch).await else {
        panic!("a change comes");
    };
    assert_eq!(change.key(), &key("b"));
    assert_eq!(here.get(&key("a")).await.unwrap(), None);
}

#[tokio::test]
async fn large_value_is_seen_whole_by_watchers() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let store = key_value(&server.url()).await;
        let mut watch = store.watch(&Prefix::ALL).await.unwrap();
        for length in [0, 4096, 4097, store.value_bytes_max()] {
            let value = vec![b' '; length];
            let name = format!("k{length}");
            let written = store
                .compare_and_set(&key(&name), Expected::Absent, &value)
                .await;
            written.unwrap().done().unwrap();
            until_seen(&mut watch, &name, &value).await;
        }
    }
}

#[tokio::test]
async fn watch_that_lost_its_connection_sees_what_it_missed() {
    let server = plain().await;
    let proxy = Proxy::start(server.address()).await;
    let settings = StoreSettings { ..settings() };
    let url = format!("redis://{}", proxy.address()).parse().unwrap();
    let far = RedisKeyValue::open(&url, &settings).await.unwrap();
    let near = key_value(&server.url()).await;
    let mut watch = far.watch(&Prefix::ALL).await.unwrap();
    proxy.cut();
    let written = near
        .compare_and_set(&key("a"), Expected::Absent, b"missed")
        .await;
    written.unwrap().done().unwrap();
    proxy.pass();
    until_seen(&mut watch, "a", b"missed").await;
}

#[tokio::test]
async fn watch_follows_to_the_server_that_the_address_leads_to() {
    let (old, new) = (plain().await, plain().await);
    let switch = Switch::to(old.address()).await;
    let store = key_value(&format!("redis://{}", switch.address())).await;
    let mut watch = store.watch(&Prefix::ALL).await.unwrap();
    assert_eq!(next(&mut watch).await, Notice::Current);
    switch.lead_to(new.address());
    // The old one lives on, and so does the connection of the watch to it.
    Raw::of(&old).say(&["CLIENT", "KILL", "TYPE", "normal"]);
    assert_eq!(next(&mut watch).await, Notice::Current);
    let near = key_value(&new.url()).await;
    let written = near
        .compare_and_set(&key("a"), Expected::Absent, b"there")
        .await;
    written.unwrap().done().unwrap();
    until_seen(&mut watch, "a", b"there").await;
}

#[tokio::test]
async fn watch_lists_again_also_when_only_the_other_connection_was_lost() {
    let server = plain().await;
    let store = key_value(&server.url()).await;
    let mut watch = store.watch(&Prefix::ALL).await.unwrap();
    assert_eq!(next(&mut watch).await, Notice::Current);
    Raw::of(&server).say(&["CLIENT", "KILL", "TYPE", "normal"]);
    assert_eq!(next(&mut watch).await, Notice::Current);
}

#[tokio::test]
async fn notices_say_that_some_may_have_been_missed_and_go_on() {
    let server = plain().await;
    let proxy = Proxy::start(server.address()).await;
    let far = leases(&format!("redis://{}", proxy.address())).await;
    let near = leases(&server.url()).await;
    let mut heard = far.notices().await.unwrap();
    proxy.cut();
    near.set_group(&name("missed"), "{}").await.unwrap();
    proxy.pass();
    let notice = timeout(SOON, heard.next()).await.unwrap();
    assert_eq!(notice, LeaseNotice::Resync);
    let wish = claim(3);
    take(&near, "a", &wish).await;
    near.release(&name("a"), std::slice::from_ref(&wish))
        .await
        .unwrap();
    let notice = loop {
        let notice = timeout(SOON, heard.next()).await.unwrap();
        if notice != LeaseNotice::Resync {
            break notice;
        }
    };
    assert_eq!(notice, LeaseNotice::Released(wish.key));
}
