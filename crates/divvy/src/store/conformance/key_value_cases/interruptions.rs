//! A store that is away for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use divvy_core::store::{Entry, Expected, Key, Outcome, Prefix, StoreErrorKind};
use tokio::task::JoinSet;

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::{Interruption, KeyValueSubject};
use super::races::joined;

/// The cases that need a subject with an interruption.
pub(super) const NAMES: [&str; 3] = [
    "operations_fail_in_time_and_work_again",
    "a_watch_catches_up_after_an_interruption",
    "acknowledged_writes_survive_an_interruption",
];

/// While the store is away, reads are `Unavailable` and writes that or
/// `Unknown`, all of them in time; afterwards the same clients work, and say
/// that they were connected anew.
pub async fn operations_fail_in_time_and_work_again(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("operations_fail_in_time_and_work_again", options);
    let Some(interruption) = subject.interruption() else {
        return Ok(());
    };
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let key = Key::new(["key"]).expect("the suite's own keys are valid");
    let revision = one.create(&key, b"before").await?;
    let connects = one.store.connection().borrow().connects;

    interruption.interrupt().await;
    let read = one.attempt_get(&key).await?.map_err(|error| error.kind());
    let written = one
        .attempt(&key, Expected::At(revision), b"meanwhile")
        .await?;
    let listing = one.store.list(&Prefix::ALL);
    let listed = run.attempt("one", "list", listing).await?;
    let deleting = one.store.delete(&key, revision);
    let deleted = run.attempt("one", "delete", deleting).await?;
    interruption.resume().await;

    let kinds = [
        ("a read", read.err(), false),
        ("a write", written.err(), true),
        ("a listing", listed.err().map(|error| error.kind()), false),
        ("a deletion", deleted.err().map(|error| error.kind()), true),
    ];
    for (what, kind, writes) in kinds {
        let right = match kind {
            Some(StoreErrorKind::Unavailable) => true,
            Some(StoreErrorKind::Unknown) => writes,
            _ => false,
        };
        run.check(right, || format!("{what} without a store became {kind:?}"))?;
    }
    let wait = run.wait("the client works again");
    while one.attempt_get(&key).await?.is_err() {
        wait.again().await?;
    }
    let wait = run.wait("the client says that it was connected anew");
    loop {
        let connection = one.store.connection().borrow().clone();
        if connection.up && connection.connects > connects {
            return Ok(());
        }
        wait.again_because(&format!("{connection:?}")).await?;
    }
}

/// A watch that lost its store shows what changed meanwhile, deletions too,
/// and follows what comes after.
pub async fn a_watch_catches_up_after_an_interruption(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_watch_catches_up_after_an_interruption", options);
    let Some(interruption) = subject.interruption() else {
        return Ok(());
    };
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let cluster = run.name("c");
    let opening = subject.open_aside(&cluster);
    let aside = run.done("aside", "open".to_owned(), opening).await?;
    let writer = aside.map_or_else(
        || one.clone(),
        |store| KeyValueClient::of(&run, store, "aside"),
    );
    let is_aside = !Arc::ptr_eq(&writer.store, &one.store);
    let key = |name: &str| Key::new(["w", name]).expect("the suite's own keys are valid");
    let mut entries: BTreeMap<Key, Entry> = BTreeMap::new();
    for name in ["changed", "deleted", "deleted and created", "same"] {
        let revision = one.create(&key(name), b"before").await?;
        set(&mut entries, &key(name), b"before", revision);
    }
    let mut watch = two.watch(&Prefix::ALL).await?;
    watch.becomes_current().await?;
    let seen: Vec<Entry> = entries.values().cloned().collect();
    watch.converges(&seen).await?;

    interruption.interrupt().await;
    if !is_aside {
        interruption.resume().await;
        let wait = run.wait("the writer works again");
        while writer.attempt_get(&key("same")).await?.is_err() {
            wait.again().await?;
        }
    }
    let at = |entries: &BTreeMap<Key, Entry>, name: &str| entries[&key(name)].revision;
    let expected = Expected::At(at(&entries, "changed"));
    let changed = writer.put(&key("changed"), expected, b"meanwhile").await?;
    set(&mut entries, &key("changed"), b"meanwhile", changed);
    writer
        .remove(&key("deleted"), at(&entries, "deleted"))
        .await?;
    entries.remove(&key("deleted"));
    let both = "deleted and created";
    writer.remove(&key(both), at(&entries, both)).await?;
    let created = writer.create(&key(both), b"anew").await?;
    set(&mut entries, &key(both), b"anew", created);
    if is_aside {
        interruption.resume().await;
    }
    let now: Vec<Entry> = entries.values().cloned().collect();
    watch.converges(&now).await?;
    let later = writer.create(&key("later"), b"later").await?;
    set(&mut entries, &key("later"), b"later", later);
    let now: Vec<Entry> = entries.values().cloned().collect();
    watch.converges(&now).await
}

/// Of writes that race an interruption, those that were acknowledged are
/// there, those that were unavailable or lost are not, and those of unknown
/// fate are there once or never.
pub async fn acknowledged_writes_survive_an_interruption(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("acknowledged_writes_survive_an_interruption", options);
    let Some(interruption) = subject.interruption() else {
        return Ok(());
    };
    let clients = KeyValueClient::open_many(&run, subject, 4).await?;
    let key = Key::new(["log"]).expect("the suite's own keys are valid");
    clients[0].create(&key, b"").await?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writing = JoinSet::new();
    for (number, client) in clients.iter().cloned().enumerate() {
        let (key, stop) = (key.clone(), Arc::clone(&stop));
        writing.spawn(append(client, key, number as u32, stop));
    }
    for _ in 0..2 {
        interrupt_while_busy(&run, interruption, &clients[0], &key).await?;
    }
    stop.store(true, Ordering::Relaxed);
    let fates: Vec<_> = joined(&run, writing).await?.into_iter().flatten().collect();

    // One more write, so that nothing of before can still happen.
    let last = append_once(&clients[0], &key, u32::MAX).await?;
    let written: Vec<u32> = last.chunks(4).map(id_of).collect();
    for (id, fate) in fates {
        let count = written.iter().filter(|found| **found == id).count();
        let right = match fate {
            Fate::Acknowledged => count == 1,
            Fate::Never => count == 0,
            Fate::Unknown => count <= 1,
        };
        run.check(right, || {
            format!("a write that was {fate:?} is there {count} times")
        })?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Acknowledged,
    Never,
    Unknown,
}

/// Interrupts once something was written, and resumes once nothing is.
async fn interrupt_while_busy(
    run: &Run,
    interruption: &dyn Interruption,
    client: &KeyValueClient,
    key: &Key,
) -> Result<(), Failure> {
    let before = client.attempt_get(key).await?;
    let length = |found: &Option<Entry>| found.as_ref().map_or(0, |entry| entry.value.len());
    let before = before.as_ref().map_or(0, length);
    let wait = run.wait("the writers write");
    loop {
        let now = client.attempt_get(key).await?;
        if now.as_ref().is_ok_and(|found| length(found) > before + 40) {
            break;
        }
        wait.again().await?;
    }
    interruption.interrupt().await;
    let wait = run.wait("the store is away");
    while client.attempt_get(key).await?.is_ok() {
        wait.again().await?;
    }
    interruption.resume().await;
    Ok(())
}

/// Appends to the list at `key` until told to stop, and tells what became of
/// each attempt.
async fn append(
    client: KeyValueClient,
    key: Key,
    number: u32,
    stop: Arc<AtomicBool>,
) -> Result<Vec<(u32, Fate)>, Failure> {
    const WRITES_MAX: u32 = 2000;
    let mut fates = Vec::new();
    let mut ids = number * WRITES_MAX..(number + 1) * WRITES_MAX;
    while !stop.load(Ordering::Relaxed) {
        let Ok(Some(entry)) = client.attempt_get(&key).await? else {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        let Some(id) = ids.next() else { break };
        let mut value = entry.value.to_vec();
        value.extend(id.to_be_bytes());
        let expected = Expected::At(entry.revision);
        let fate = match client.attempt(&key, expected, &value).await? {
            Ok(Outcome::Done(_)) => Fate::Acknowledged,
            Ok(Outcome::Conflict) | Err(StoreErrorKind::Unavailable) => Fate::Never,
            Err(StoreErrorKind::Unknown) => Fate::Unknown,
            Err(kind) => {
                let reason = format!("a write during an interruption became {kind:?}");
                return Err(client.run.fail(reason));
            }
        };
        fates.push((id, fate));
    }
    Ok(fates)
}

/// Appends once, and gives the whole list.
async fn append_once(client: &KeyValueClient, key: &Key, id: u32) -> Result<Vec<u8>, Failure> {
    let wait = client.run.wait("a write after the interruption succeeds");
    loop {
        if let Ok(Some(entry)) = client.attempt_get(key).await? {
            let mut value = entry.value.to_vec();
            value.extend(id.to_be_bytes());
            let expected = Expected::At(entry.revision);
            if let Ok(Outcome::Done(_)) = client.attempt(key, expected, &value).await? {
                return Ok(value);
            }
        }
        wait.again().await?;
    }
}

fn id_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |id, byte| id << 8 | u32::from(*byte))
}

fn set(
    entries: &mut BTreeMap<Key, Entry>,
    key: &Key,
    value: &[u8],
    revision: divvy_core::store::Revision,
) {
    let entry = Entry {
        key: key.clone(),
        value: value.into(),
        revision,
    };
    entries.insert(key.clone(), entry);
}
