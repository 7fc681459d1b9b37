//! The fence that the example shows.

#[path = "../../examples/fence_nats.rs"]
#[allow(dead_code, unreachable_pub, clippy::disallowed_methods)]
mod example;

use divvy::store::Token;

use crate::bed::{key, newest, open, value};
use example::fenced_write;

#[tokio::test]
async fn a_fence_refuses_every_token_below_the_highest() {
    let server = newest().await;
    let store = open(&server.url()).await;
    let high = (1_i64 << 60) + 1;
    let tokens = [
        (9, true),
        (8, false),
        (high, true),
        (high - 1, false),
        (high, true),
    ];
    for (number, expected) in tokens {
        let token = Token::new(number).unwrap();
        let text = number.to_string();
        let written = fenced_write(&store, &key("fenced"), token, text.as_bytes()).await;
        assert_eq!(written.unwrap(), expected, "{number}");
    }
    let stored = value(&store, "fenced").await.unwrap();
    assert_eq!(stored[8..], *high.to_string().as_bytes());
}

#[tokio::test]
async fn of_writers_at_once_the_highest_token_stays() {
    let server = newest().await;
    let store = open(&server.url()).await;
    let mut writing = tokio::task::JoinSet::new();
    for number in 1..=8 {
        let store = store.clone();
        writing.spawn(async move {
            let token = Token::new(number).unwrap();
            fenced_write(&store, &key("fenced"), token, &[number as u8])
                .await
                .unwrap()
        });
    }
    let written = writing.join_all().await;
    assert!(written.contains(&true));
    let stored = value(&store, "fenced").await.unwrap();
    assert_eq!(stored[8..], [8]);
}
