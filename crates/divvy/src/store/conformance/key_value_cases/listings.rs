//! Listings: exactly what is below a prefix.

use divvy_core::store::{Entry, Expected, Key, Prefix};
use tokio::task::JoinSet;

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;
use super::races::joined;

/// Keys below a prefix by whole parts: `w` holds `w.7`, but neither `w` itself
/// nor `work.7`.
pub async fn a_listing_holds_exactly_its_prefix(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_listing_holds_exactly_its_prefix", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let names: [&[&str]; 14] = [
        &["w"],
        &["w", "1"],
        &["w", "1", "a"],
        &["w", "1", "a", "x"],
        &["w", "10"],
        &["w", "1-"],
        &["w.", "1"],
        &["w", "2", "a"],
        &["work"],
        &["work", "7"],
        &["W", "1"],
        &["v", "w", "1"],
        &["w-", "1"],
        &["w_", "1"],
    ];
    let mut all = Vec::new();
    for parts in names {
        let key = key(parts);
        let value = format!("{parts:?}");
        let revision = one.create(&key, value.as_bytes()).await?;
        let value = value.as_bytes().into();
        all.push(Entry {
            key,
            value,
            revision,
        });
    }
    all.sort_by(|a, b| a.key.cmp(&b.key));
    two.lists(&Prefix::ALL, &all).await?;
    let parents = names.iter().copied();
    for parts in parents.chain([["none"].as_slice(), &["w", "1", "a", "x", "y"]]) {
        for prefix in [Prefix::below(key(parts)), Prefix::only(key(parts))] {
            let held = all.iter().filter(|entry| prefix.holds(&entry.key));
            let held: Vec<Entry> = held.cloned().collect();
            two.lists(&prefix, &held).await?;
        }
    }
    // What is deleted is not listed, and what is changed is listed so.
    let gone = all.remove(2);
    one.remove(&gone.key, gone.revision).await?;
    let changed = &mut all[0];
    changed.value = b"changed".as_slice().into();
    let expected = Expected::At(changed.revision);
    changed.revision = one.put(&changed.key, expected, &changed.value).await?;
    two.lists(&Prefix::ALL, &all).await
}

/// Many keys are listed whole, although a server may give them in pages.
pub async fn a_listing_of_many_is_complete(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_listing_of_many_is_complete", options);
    let clients = KeyValueClient::open_many(&run, subject, 8).await?;
    let each = options.operations.clamp(1, 4000) / 4;
    let mut writers = JoinSet::new();
    for (number, client) in clients.iter().cloned().enumerate() {
        writers.spawn(async move {
            let mut entries = Vec::new();
            for index in 0..each {
                let key = key(&["many", &format!("{number}-{index}")]);
                let value = index.to_string();
                let revision = client.create(&key, value.as_bytes()).await?;
                let value = value.as_bytes().into();
                entries.push(Entry {
                    key,
                    value,
                    revision,
                });
            }
            Ok(entries)
        });
    }
    let written = joined(&run, writers).await?;
    let mut all: Vec<Entry> = written.into_iter().flatten().collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    for client in clients.iter().take(2) {
        client.lists(&Prefix::below(key(&["many"])), &all).await?;
        client.lists(&Prefix::ALL, &all).await?;
        let below_one = Prefix::below(key(&["many", "0-0"]));
        client.lists(&below_one, &[]).await?;
    }
    Ok(())
}

/// A listing is no snapshot, but a key that is there all the time is in each,
/// once.
pub async fn a_listing_holds_what_stays_while_others_change(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_listing_holds_what_stays_while_others_change", options);
    let clients = KeyValueClient::open_many(&run, subject, 4).await?;
    let mut staying = Vec::new();
    for index in 0..50 {
        let key = key(&["k", &format!("{index}-stays")]);
        let revision = clients[0].create(&key, b"stays").await?;
        let value = b"stays".as_slice().into();
        staying.push(Entry {
            key,
            value,
            revision,
        });
    }
    staying.sort_by(|a, b| a.key.cmp(&b.key));
    let below = Prefix::below(key(&["k"]));
    clients[3].lists(&below, &staying).await?;

    let mut changing = JoinSet::new();
    for (number, client) in clients.iter().take(3).cloned().enumerate() {
        let rounds = options.operations / 8;
        changing.spawn(async move {
            for round in 0..rounds {
                let key = key(&["k", &format!("{}-moves{number}", round % 50)]);
                let created = client.create(&key, b"new").await?;
                let updated = client.put(&key, Expected::At(created), b"newer").await?;
                client.remove(&key, updated).await?;
            }
            Ok(())
        });
    }
    while !changing.is_empty() {
        let found = clients[3].list(&below).await?;
        let lost = staying.iter().find(|entry| !found.contains(entry));
        run.check(lost.is_none(), || {
            format!("a listing lacks {lost:?}, which is there all the time")
        })?;
        tokio::task::yield_now().await;
        while let Some(ended) = changing.try_join_next() {
            ended.map_err(|error| run.fail(error.to_string()))??;
        }
    }
    clients[3].lists(&below, &staying).await
}

fn key(parts: &[&str]) -> Key {
    Key::new(parts.iter().copied()).expect("the suite's own keys are valid")
}
