//! A fence in Redis: a value that refuses who was owner before.
//!
//! The lease of a paused process may have ended long ago when it wakes up and
//! writes. Only the resource can tell, by the token: it keeps the highest that
//! it has seen, and refuses lower ones, in one step with the write.
//!
//! ```console
//! $ cargo run -p divvy --features redis --example fence_redis -- redis://localhost:6379
//! ```

use divvy::store::Token;
use redis::Script;
use redis::aio::MultiplexedConnection;

/// `KEYS[1]` holds the value and the highest token. Tokens are above 2^53, where
/// Lua's numbers are not exact: they are compared as texts of equal length.
const WRITE: &str = r#"
local last = redis.call('HGET', KEYS[1], 'token') or ''
local mine = ARGV[1]
if #last > #mine or (#last == #mine and last > mine) then return 0 end
redis.call('HSET', KEYS[1], 'token', mine, 'value', ARGV[2])
return 1
"#;

/// Writes if no higher token was seen; whether it was written.
pub async fn fenced_write(
    connection: &mut MultiplexedConnection,
    key: &str,
    token: Token,
    value: &str,
) -> redis::RedisResult<bool> {
    let script = Script::new(WRITE);
    let mut call = script.prepare_invoke();
    call.key(key).arg(token.get().to_string()).arg(value);
    let written: u32 = call.invoke_async(connection).await?;
    Ok(written == 1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let client = redis::Client::open(address.as_deref().unwrap_or("redis://localhost:6379"))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let key = format!("divvy-fence-{:x}", fastrand::u64(..));
    // Grants give these: `grant.run(async |token| fenced_write(…, token, …).await)`.
    let (old, new) = (token(1 << 60), token((1 << 60) + 1));
    println!(
        "the new owner writes: {}",
        fenced_write(&mut connection, &key, new, "new").await?
    );
    println!(
        "it writes again:      {}",
        fenced_write(&mut connection, &key, new, "newer").await?
    );
    println!(
        "the old owner writes: {}",
        fenced_write(&mut connection, &key, old, "old").await?
    );
    let value: String = redis::cmd("HGET")
        .arg(&key)
        .arg("value")
        .query_async(&mut connection)
        .await?;
    println!("what is there:        {value}");
    let _gone: u32 = redis::cmd("DEL")
        .arg(&key)
        .query_async(&mut connection)
        .await?;
    Ok(())
}

fn token(number: i64) -> Token {
    Token::new(number).expect("it is above 0")
}
