//! Loads on a key-value store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use divvy::store::{
    Change, Entry, Expected, Key, KeyValue, Notice, Outcome, Prefix, Revision, StoreError,
};

use super::measure::{Figure, Stopwatch};

/// What a member of a cluster writes with every heartbeat is about as large.
const VALUE_BYTES: usize = 120;

/// Measures every load on a key-value store, and leaves no key behind.
pub(super) async fn measure(
    store: &Arc<dyn KeyValue>,
    name: &str,
    clients: u32,
    time: Duration,
) -> Result<Vec<Figure>, StoreError> {
    let figures = vec![
        own_keys(store, name, 1, time).await?,
        own_keys(store, name, clients, time).await?,
        one_counter(store, name, clients, time).await?,
        watch(store, name, time).await?,
    ];
    clean(store).await?;
    Ok(figures)
}

/// Deletes what was written.
pub(super) async fn clean(store: &Arc<dyn KeyValue>) -> Result<(), StoreError> {
    for entry in store.list(&Prefix::ALL).await? {
        // Whoever else changed it meanwhile may keep it.
        let _outcome = store.delete(&entry.key, entry.revision).await?;
    }
    Ok(())
}

/// Each client renews a key of its own, as heartbeats do.
async fn own_keys(
    store: &Arc<dyn KeyValue>,
    name: &str,
    clients: u32,
    time: Duration,
) -> Result<Figure, StoreError> {
    let mut watch = Stopwatch::start();
    let until = Instant::now() + time;
    let tasks: Vec<_> = (0..clients)
        .map(|client| tokio::spawn(renewals(Arc::clone(store), client, until)))
        .collect();
    for task in tasks {
        watch.laps(task.await.expect("measuring does not panic")?);
    }
    Ok(watch.stop(name, format!("compare-and-set, {}", of_clients(clients)), 1))
}

/// Writes a key of its own until then.
pub(super) async fn renewals(
    store: Arc<dyn KeyValue>,
    client: u32,
    until: Instant,
) -> Result<Vec<Duration>, StoreError> {
    let key = Key::new(["own", &client.to_string()])?;
    let mut expected = state_of(store.get(&key).await?);
    let mut times = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        match store
            .compare_and_set(&key, expected, &[7; VALUE_BYTES])
            .await?
        {
            Outcome::Done(revision) => expected = Expected::At(revision),
            Outcome::Conflict => expected = state_of(store.get(&key).await?),
        }
        times.push(began.elapsed());
    }
    Ok(times)
}

/// All clients count in one key: the most that can be in each other's way.
async fn one_counter(
    store: &Arc<dyn KeyValue>,
    name: &str,
    clients: u32,
    time: Duration,
) -> Result<Figure, StoreError> {
    let key = Key::new(["counter"])?;
    let before = counted(store.get(&key).await?.as_ref());
    let mut watch = Stopwatch::start();
    let until = Instant::now() + time;
    let tasks: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(increments(Arc::clone(store), key.clone(), until)))
        .collect();
    let mut done = 0;
    for task in tasks {
        let times = task.await.expect("measuring does not panic")?;
        done += times.len() as u64;
        watch.laps(times);
    }
    let after = counted(store.get(&key).await?.as_ref());
    if after != before + done {
        let lost = format!(
            "{done} increments were acknowledged, and the counter went from {before} to {after}"
        );
        return Err(StoreError::unfit(lost));
    }
    Ok(watch.stop(name, format!("one counter, {}", of_clients(clients)), 1))
}

async fn increments(
    store: Arc<dyn KeyValue>,
    key: Key,
    until: Instant,
) -> Result<Vec<Duration>, StoreError> {
    let mut times = Vec::new();
    let mut began = Instant::now();
    while Instant::now() < until {
        let entry = store.get(&key).await?;
        let next = (counted(entry.as_ref()) + 1).to_le_bytes();
        let written = store.compare_and_set(&key, state_of(entry), &next).await?;
        if let Outcome::Done(_) = written {
            times.push(began.elapsed());
            began = Instant::now();
        }
    }
    Ok(times)
}

/// From a write to the watch that sees it.
async fn watch(
    store: &Arc<dyn KeyValue>,
    name: &str,
    time: Duration,
) -> Result<Figure, StoreError> {
    let parent = Key::new(["watched"])?;
    let key = Key::new(["watched", "one"])?;
    let mut watch = store.watch(&Prefix::below(parent)).await?;
    while watch.next().await? != Notice::Current {}
    let mut expected = state_of(store.get(&key).await?);
    let mut stopwatch = Stopwatch::start();
    let until = Instant::now() + time;
    while Instant::now() < until {
        let began = Instant::now();
        let Outcome::Done(revision) = store.compare_and_set(&key, expected, b"seen?").await? else {
            return Err(StoreError::unfit(
                "somebody else writes to the cluster that is measured",
            ));
        };
        expected = Expected::At(revision);
        until_seen(&mut watch, revision).await?;
        stopwatch.lap(began.elapsed());
    }
    Ok(stopwatch.stop(name, "write until a watch sees it", 1))
}

async fn until_seen(watch: &mut divvy::store::Watch, revision: Revision) -> Result<(), StoreError> {
    loop {
        if let Notice::Changed(Change::Put(entry)) = watch.next().await?
            && entry.revision >= revision
        {
            return Ok(());
        }
    }
}

fn state_of(entry: Option<Entry>) -> Expected {
    entry.map(|entry| entry.revision).into()
}

fn counted(entry: Option<&Entry>) -> u64 {
    let bytes = entry.and_then(|entry| entry.value.as_ref().try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

pub(super) fn of_clients(clients: u32) -> String {
    match clients {
        1 => "1 client".to_owned(),
        clients => format!("{clients} clients"),
    }
}
