//! The fence that the example shows.

#[path = "../../examples/fence_redis.rs"]
#[allow(dead_code, unreachable_pub, clippy::disallowed_methods)]
mod example;

use divvy::store::Token;

use crate::bed::plain;
use example::fenced_write;

#[tokio::test]
async fn a_fence_refuses_every_token_below_the_highest() {
    let server = plain().await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    // Beyond what a Lua number holds exactly, and of another number of digits.
    let high = (1_i64 << 60) + 1;
    let tokens = [
        (9, true),
        (10, true),
        (9, false),
        (high, true),
        (high - 1, false),
        (high, true),
        (i64::MAX, true),
        (high, false),
    ];
    for (number, expected) in tokens {
        let token = Token::new(number).unwrap();
        let value = number.to_string();
        let written = fenced_write(&mut connection, "fenced", token, &value).await;
        assert_eq!(written.unwrap(), expected, "{number}");
    }
    let value: String = redis::cmd("HGET")
        .arg("fenced")
        .arg("value")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(value, i64::MAX.to_string());
}
