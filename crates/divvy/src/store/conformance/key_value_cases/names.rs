//! Names that look like patterns, paths, separators or other names.

use std::collections::BTreeMap;

use divvy_core::store::{Entry, KEY_BYTES_MAX, KEY_PARTS_MAX, Key, Prefix};

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;

/// Keys of different names are different keys: every ASCII character, wild
/// cards, paths, encoded look-alikes, letters that differ in case or form only.
pub async fn distinct_names_never_meet(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("distinct_names_never_meet", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let mut written = BTreeMap::new();
    for (number, parts) in hostile().into_iter().enumerate() {
        let key = Key::new(parts.iter().map(String::as_str));
        let key = key.map_err(|error| run.fail(error.to_string()))?;
        let value = format!("{number} {parts:?}");
        let revision = one.create(&key, value.as_bytes()).await?;
        let entry = Entry {
            key: key.clone(),
            value: value.as_bytes().into(),
            revision,
        };
        let before = written.insert(key, entry);
        run.check(before.is_none(), || format!("{parts:?} is no new key"))?;
    }
    for entry in written.values() {
        two.finds(&entry.key, &entry.value, entry.revision).await?;
    }
    let all: Vec<Entry> = written.values().cloned().collect();
    two.lists(&Prefix::ALL, &all).await?;
    // Nor does a prefix reach further than its own names.
    for parent in ["*", ">", "a", "a.b", "..", "%", "_", "[a]", "?"] {
        let prefix = Prefix::below(Key::new([parent]).expect("a short name is valid"));
        let below = all.iter().filter(|entry| prefix.holds(&entry.key));
        let below: Vec<Entry> = below.cloned().collect();
        two.lists(&prefix, &below).await?;
    }
    Ok(())
}

/// Keys of the greatest length, in one part and in the most parts, that differ
/// in their last character only.
pub async fn the_longest_keys_fit(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("the_longest_keys_fit", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let mut keys = Vec::new();
    for last in ['x', 'y'] {
        let long = "x".repeat(KEY_BYTES_MAX - 1);
        keys.push(Key::new([format!("{long}{last}").as_str()]));
        let (parts, last) = (vec!["p"; KEY_PARTS_MAX - 1], last.to_string());
        let rest = KEY_BYTES_MAX - 2 * parts.len() - 1;
        let last = format!("{}{last}", "l".repeat(rest));
        keys.push(Key::new(parts.into_iter().chain([last.as_str()])));
    }
    let mut all = Vec::new();
    for key in keys {
        let key = key.map_err(|error| run.fail(error.to_string()))?;
        run.check(key.as_str().len() == KEY_BYTES_MAX, || {
            "the suite's longest key is not the longest".to_owned()
        })?;
        let value = key.as_str().as_bytes()[KEY_BYTES_MAX - 4..].to_vec();
        let revision = one.create(&key, &value).await?;
        two.finds(&key, &value, revision).await?;
        let value = value.into();
        all.push(Entry {
            key,
            value,
            revision,
        });
    }
    all.sort_by(|a, b| a.key.cmp(&b.key));
    two.lists(&Prefix::ALL, &all).await?;
    for entry in &all {
        one.remove(&entry.key, entry.revision).await?;
    }
    two.lists(&Prefix::ALL, &[]).await
}

/// Parts of keys that a careless store confuses.
fn hostile() -> Vec<Vec<String>> {
    let ascii = (0..=127_u8).map(|byte| vec![char::from(byte).to_string()]);
    let words = ALONE.split_whitespace().chain(SPACED);
    let alone = words.map(|name| vec![name.to_owned()]);
    let nested = NESTED.iter().map(|parts| parts.iter());
    let nested = nested.map(|parts| parts.map(|part| (*part).to_owned()).collect());
    let mut all: Vec<Vec<String>> = ascii.chain(alone).chain(nested).collect();
    all.sort();
    all.dedup();
    all
}

const ALONE: &str = "a* a> a.b a..b .. a/b ../a a=b =2A a=2Eb AB Ab aB ab %2A a% a_ [a] a? '--;' \
    \"a\" \\ \\* $KV _INBOX é e\u{301} \u{1F980} ß SS \u{202e}x \u{feff}a 000 00 -1 +inf null -- \
    a- a|b a:b {a}b";

const SPACED: [&str; 7] = [" a", "a ", "\ta", "a\r\nb", "a\0b", "a\0", "a b"];

const NESTED: [&[&str]; 11] = [
    &["a", "b"],
    &["a", "b", "c"],
    &["a.b", "c"],
    &["a", "b.c"],
    &["a", "*"],
    &["*", "b"],
    &["a", ">"],
    &[">", "a"],
    &["..", "a"],
    &["%", "a"],
    &["_", "a"],
];
