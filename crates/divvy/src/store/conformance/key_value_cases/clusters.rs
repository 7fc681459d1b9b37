//! Clusters that share a store.

use divvy_core::store::{Entry, Expected, Key, Prefix};

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;

/// Clusters with the same keys, and with names that make a careless store
/// confuse them, see, change and delete nothing of each other.
pub async fn clusters_never_see_each_other(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("clusters_never_see_each_other", options);
    let names = [
        "a", "a.b", "a.b.c", "a*", "a>", "a=2Eb", "A", "a b", "a/b", "a..", "é", "a.=2A",
    ];
    let keys = [
        Key::new(["b", "c"]),
        Key::new(["c"]),
        Key::new(["b.c"]),
        Key::new(["b", "c", "c"]),
    ];
    let keys = keys.map(|key| key.expect("the suite's own keys are valid"));
    let mut clusters = Vec::new();
    for name in names {
        let client = KeyValueClient::open(&run, subject, name, name).await?;
        let mut entries = Vec::new();
        for key in &keys {
            let value = format!("{name}: {key}");
            let revision = client.create(key, value.as_bytes()).await?;
            let value = value.as_bytes().into();
            entries.push(Entry {
                key: key.clone(),
                value,
                revision,
            });
        }
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        clusters.push((client, entries));
    }
    for (client, entries) in &clusters {
        client.lists(&Prefix::ALL, entries).await?;
        for entry in entries {
            client
                .finds(&entry.key, &entry.value, entry.revision)
                .await?;
        }
    }
    // One changes and deletes what it has; the others keep theirs.
    let (first, others) = clusters.split_first().expect("there are clusters");
    for (number, entry) in first.1.iter().enumerate() {
        let at = first
            .0
            .put(&entry.key, Expected::At(entry.revision), b"changed")
            .await?;
        if number > 0 {
            first.0.remove(&entry.key, at).await?;
        }
    }
    for (client, entries) in others {
        client.lists(&Prefix::ALL, entries).await?;
    }
    Ok(())
}

/// A store says what it is, is reached, and is of one incarnation for all its
/// clients.
pub async fn a_store_describes_itself(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_store_describes_itself", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "other", "two").await?;
    run.is_described([&*one.store, &*two.store, &*one.store])
        .await
}
