//! A fence in NATS: a key of a bucket that refuses who was owner before.
//!
//! The value carries the token of its writer. Who writes reads it first, gives
//! way to a higher token, and replaces exactly what it has read: whoever wrote
//! in between makes that fail, and it looks again.
//!
//! ```console
//! $ cargo run -p divvy --features nats --example fence_nats -- nats://localhost:4222
//! ```

use divvy::store::nats::NatsStore;
use divvy::store::{Expected, Key, KeyValue, Outcome, StoreError, StoreSettings, Token};

/// Writes if no higher token was seen; whether it was written.
pub async fn fenced_write(
    bucket: &impl KeyValue,
    key: &Key,
    token: Token,
    value: &[u8],
) -> Result<bool, StoreError> {
    let stored = [&token.get().to_be_bytes()[..], value].concat();
    loop {
        let found = bucket.get(key).await?;
        let last = found.as_ref().and_then(|entry| {
            let (token, _value) = entry.value.split_first_chunk::<8>()?;
            Token::new(i64::from_be_bytes(*token))
        });
        if last.is_some_and(|last| last > token) {
            return Ok(false);
        }
        let expected = Expected::from(found.map(|entry| entry.revision));
        match bucket.compare_and_set(key, expected, &stored).await? {
            Outcome::Done(_revision) => return Ok(true),
            Outcome::Conflict => {}
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let url = address
        .as_deref()
        .unwrap_or("nats://localhost:4222")
        .parse()?;
    let settings = StoreSettings {
        bucket: "orders".to_owned(),
        ..StoreSettings::default()
    };
    let bucket = NatsStore::open(&url, &settings).await?;
    let key = Key::new([format!("order-{:x}", fastrand::u64(..)).as_str()])?;
    // Grants give these: `grant.run(async |token| fenced_write(…, token, …).await)`.
    let (old, new) = (token(1 << 60), token((1 << 60) + 1));
    println!(
        "the new owner writes: {}",
        fenced_write(&bucket, &key, new, b"new").await?
    );
    println!(
        "it writes again:      {}",
        fenced_write(&bucket, &key, new, b"newer").await?
    );
    println!(
        "the old owner writes: {}",
        fenced_write(&bucket, &key, old, b"old").await?
    );
    let found = bucket.get(&key).await?.expect("it was written");
    println!(
        "what is there:        {}",
        String::from_utf8_lossy(&found.value[8..])
    );
    // This one was made up: a real order stays, and with it the token.
    let _gone = bucket.delete(&key, found.revision).await?;
    Ok(())
}

fn token(number: i64) -> Token {
    Token::new(number).expect("it is above 0")
}
