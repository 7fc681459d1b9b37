//! Waiting.

use std::future::pending;
use std::time::Duration;

use divvy_testbed::{until, until_some};

const SHORT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn condition_is_polled_until_it_holds() {
    let mut polled = 0;
    let counting = async || {
        polled += 1;
        polled == 3
    };
    until(Duration::from_secs(20), "three polls", counting).await;
    assert_eq!(polled, 3);
}

#[tokio::test]
async fn answer_is_returned() {
    let answer = until_some(SHORT, "an answer", || async { Some(7) }).await;
    assert_eq!(answer, 7);
}

#[tokio::test]
#[should_panic(expected = "a pig that flies, crates/divvy-testbed/tests/suite/until.rs:")]
async fn what_never_holds_fails_with_its_name_and_place() {
    until(SHORT, "a pig that flies", async || false).await;
}

#[tokio::test]
#[should_panic(expected = "still not known after 20ms: an answer")]
async fn condition_that_does_not_come_back_is_bounded_too() {
    until(SHORT, "an answer", async || pending().await).await;
}
