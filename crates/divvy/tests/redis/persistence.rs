//! Servers that keep nothing.

use divvy_testbed::{RedisOptions, until_some};

use crate::access::LEASE_RULE;
use crate::bed::{SOON, key_value, leases, redis, try_leases, with_login};
use crate::log::logging;

const SAVES_NOTHING: &str = "the server saves nothing";

#[tokio::test]
async fn server_that_saves_nothing_is_warned_of_once_for_each_store() {
    let (log, _guard) = logging();
    let server = redis(RedisOptions::new()).await;
    let store = leases(&server.url()).await;
    assert_eq!(log.text().matches(SAVES_NOTHING).count(), 1);
    assert!(log.text().contains("WARN"));
    key_value(&server.url()).await;
    assert_eq!(log.text().matches(SAVES_NOTHING).count(), 2);
    drop(store);
}

#[tokio::test]
async fn server_that_saves_is_not_warned_of() {
    let (log, _guard) = logging();
    let options = [
        RedisOptions::new().append_only(),
        RedisOptions::new().extra("save 3600 1"),
    ];
    for options in options {
        let server = redis(options).await;
        leases(&server.url()).await;
    }
    let text = log.text();
    assert!(
        !text.contains(SAVES_NOTHING) && !text.contains("may lose"),
        "{text}"
    );
}

#[tokio::test]
async fn user_who_may_not_ask_for_snapshots_is_told_of_the_doubt() {
    let (log, _guard) = logging();
    let rule = LEASE_RULE.replace("PASSWORD", "s3cret");
    let server = redis(RedisOptions::new().user(&rule)).await;
    let settings = with_login("divvy-leases", "s3cret");
    try_leases(&server.url(), &settings).await.unwrap();
    until_some(SOON, "the warning", async || {
        log.text().contains("may lose").then_some(())
    })
    .await;
}
