//! Values: every byte, every size.

use divvy_core::store::{ChunkManifest, Entry, Expected, Key, Prefix};

use super::super::super::VALUE_BYTES_MAX;
use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;

/// Empty, binary and misleading values come back as they were written, by
/// `get` and by `list`.
pub async fn values_come_back_byte_for_byte(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("values_come_back_byte_for_byte", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut random = run.random();
    let length = (one.store.value_bytes_max() / 2).min(10_000);
    let noise: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    let values: [&[u8]; 9] = [
        b"",
        b"\0",
        b"\r\n",
        b" value ",
        b"0",
        b"+OK\r\n$-1\r\n",
        "\u{feff}\u{1F980}".as_bytes(),
        &every_byte,
        &noise,
    ];
    let mut expected = Vec::new();
    for (number, value) in values.iter().enumerate() {
        let key = key(&format!("v{number}"));
        let first = one.create(&key, b"another before").await?;
        let revision = one.put(&key, Expected::At(first), value).await?;
        two.finds(&key, value, revision).await?;
        let value = (*value).into();
        expected.push(Entry {
            key,
            value,
            revision,
        });
    }
    two.lists(&Prefix::ALL, &expected).await
}

/// A value of exactly the bound is kept whole; one byte more is refused before
/// anything is changed.
pub async fn the_largest_value_fits_and_one_byte_more_is_refused(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new(
        "the_largest_value_fits_and_one_byte_more_is_refused",
        options,
    );
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let bound = one.store.value_bytes_max();
    run.check((1..=VALUE_BYTES_MAX).contains(&bound), || {
        format!("value_bytes_max is {bound}, must be in 1..={VALUE_BYTES_MAX}")
    })?;
    let mut random = run.random();
    let mut value: Vec<u8> = (0..=bound).map(|_| random.u8(..)).collect();
    let large = &value[..bound];
    let (key, absent) = (key("large"), key("absent"));
    let first = one.create(&key, large).await?;
    two.finds(&key, large, first).await?;
    value.reverse();
    let second = two.put(&key, Expected::At(first), &value[1..]).await?;
    one.finds(&key, &value[1..], second).await?;

    let overwriting = one
        .store
        .compare_and_set(&key, Expected::At(second), &value);
    run.refused("one", "set to one byte too many", overwriting)
        .await?;
    let creating = one.store.compare_and_set(&absent, Expected::Absent, &value);
    run.refused("one", "create with one byte too many", creating)
        .await?;
    two.misses(&absent).await?;
    two.finds(&key, &value[1..], second).await?;
    // The client still works.
    one.put(&key, Expected::At(second), b"small again").await?;
    Ok(())
}

/// What is larger is written as chunks and read back through its manifest.
pub async fn a_large_value_travels_in_chunks(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_large_value_travels_in_chunks", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let bound = one.store.value_bytes_max();
    let mut random = run.random();
    let value: Vec<u8> = (0..bound * 4 + bound / 3).map(|_| random.u8(..)).collect();
    let invalid = |error: divvy_core::Invalid| run.fail(error.to_string());
    let (manifest, chunks) = ChunkManifest::split(&value, bound).map_err(invalid)?;
    let chunk_key = |index: usize| {
        let parts = ["chunk".to_owned(), format!("{index:04}")];
        Key::new(parts.iter().map(String::as_str)).expect("the suite's own keys are valid")
    };
    for (index, chunk) in chunks.iter().enumerate() {
        one.create(&chunk_key(index), chunk).await?;
    }
    let wait = run.wait("every chunk is there");
    let found = loop {
        let mut found = Vec::new();
        for index in 0..manifest.count() as usize {
            found.extend(two.get(&chunk_key(index)).await?.map(|entry| entry.value));
        }
        if found.len() == chunks.len() {
            break found;
        }
        wait.again().await?;
    };
    let whole = manifest.join(&found).map_err(invalid)?;
    run.check(whole == value, || {
        "the chunks became another value".to_owned()
    })
}

fn key(name: &str) -> Key {
    Key::new([name]).expect("the suite's own keys are valid")
}
