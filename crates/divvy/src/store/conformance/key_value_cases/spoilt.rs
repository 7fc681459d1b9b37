//! Values that another program has written over: they are read as they are, at
//! a revision, and harm no other key.

use divvy_core::store::{Entry, Expected, Key, Prefix, Revision};

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::{KeyValueSubject, Spoilt};

/// The names of the cases, for a report.
pub(super) const NAMES: [&str; 2] = [
    "a_spoilt_value_harms_no_other_key",
    "a_spoilt_value_can_be_replaced_and_deleted",
];

/// Listings, reads and watches show a spoilt value at one revision until it is
/// replaced, and all other values as they were.
pub async fn a_spoilt_value_harms_no_other_key(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_spoilt_value_harms_no_other_key", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let prefix = Prefix::below(key(&["w"]));
    for with in Spoilt::ALL {
        let mut entries = Vec::new();
        for name in ["a", "b", "c"] {
            let key = key(&["w", name]);
            let revision = one.create(&key, name.as_bytes()).await?;
            let value = name.as_bytes().into();
            entries.push(Entry {
                key,
                value,
                revision,
            });
        }
        let victim = entries[1].clone();
        if let Some(revision) = spoil(&run, subject, &one, &victim, with).await? {
            entries[1].revision = revision;
            entries[1].value = with.bytes().into();
            for client in [&one, &two] {
                client.lists(&prefix, &entries).await?;
                client.finds(&victim.key, with.bytes(), revision).await?;
                client
                    .finds(&entries[0].key, b"a", entries[0].revision)
                    .await?;
            }
            two.watch(&prefix).await?.converges(&entries).await?;
        }
        for entry in &entries {
            one.remove(&entry.key, entry.revision).await?;
        }
    }
    Ok(())
}

/// A spoilt value is there, so it is not created. At its revision it can be
/// replaced and deleted as any other, and at that of before it cannot.
pub async fn a_spoilt_value_can_be_replaced_and_deleted(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_spoilt_value_can_be_replaced_and_deleted", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let key = key(&["w", "a"]);
    for with in Spoilt::ALL {
        let first = one.create(&key, b"first").await?;
        let before = entry(&key, b"first", first);
        let Some(revision) = spoil(&run, subject, &one, &before, with).await? else {
            one.remove(&key, first).await?;
            continue;
        };
        two.loses(&key, Expected::Absent).await?;
        if revision != first {
            two.loses(&key, Expected::At(first)).await?;
        }
        let fenced = two.put(&key, Expected::At(revision), b"fenced").await?;
        run.check(fenced > revision, || {
            format!("{fenced} is not above {revision}")
        })?;
        one.finds(&key, b"fenced", fenced).await?;
        let before = entry(&key, b"fenced", fenced);
        let again = spoil(&run, subject, &one, &before, with).await?;
        one.remove(&key, again.unwrap_or(fenced)).await?;
        two.misses(&key).await?;
    }
    Ok(())
}

/// Spoils an entry, if that can be done, and reads at which revision it is.
async fn spoil(
    run: &Run,
    subject: &dyn KeyValueSubject,
    client: &KeyValueClient,
    entry: &Entry,
    with: Spoilt,
) -> Result<Option<Revision>, Failure> {
    let Some(vandal) = subject.vandal() else {
        return Ok(None);
    };
    run.note(format_args!("{} is spoilt with {with:?}", entry.key));
    if !vandal.spoil(&run.name("c"), &entry.key, with).await {
        return Ok(None);
    }
    let wait = run.wait(format!("{} is read as it is", entry.key));
    loop {
        match client.get(&entry.key).await? {
            Some(found) if *found.value == *with.bytes() && found.revision >= entry.revision => {
                return Ok(Some(found.revision));
            }
            other => wait.again_because(&format!("{other:?}")).await?,
        }
    }
}

fn entry(key: &Key, value: &[u8], revision: Revision) -> Entry {
    Entry {
        key: key.clone(),
        value: value.into(),
        revision,
    }
}

fn key(parts: &[&str]) -> Key {
    Key::new(parts.iter().copied()).expect("the suite's own keys are valid")
}
