//! Watches: what is there, then what changes.

use divvy_core::store::{Change, Entry, Expected, Key, Outcome, Prefix};
use fastrand::Rng;
use tokio::task::JoinSet;

use super::super::super::Notice;
use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;
use super::races::joined;

/// A watch first shows everything that is there, and then says so; where there
/// is nothing, it says so at once.
pub async fn a_watch_begins_with_what_is_there(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_watch_begins_with_what_is_there", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let prefix = Prefix::below(key(&["w"]));
    let first = two.watch(&prefix).await?.next().await?;
    run.check(first == Notice::Current, || {
        format!("a watch of nothing began with {first:?}")
    })?;
    let mut entries = Vec::new();
    for name in ["1", "2", "3", "gone"] {
        let key = key(&["w", name]);
        let revision = one.create(&key, name.as_bytes()).await?;
        let value = name.as_bytes().into();
        entries.push(Entry {
            key,
            value,
            revision,
        });
    }
    one.create(&key(&["w"]), b"not below").await?;
    let gone = entries.pop().expect("four were written");
    one.remove(&gone.key, gone.revision).await?;
    two.lists(&prefix, &entries).await?;
    let mut watch = two.watch(&prefix).await?;
    watch.becomes_current().await?;
    watch.converges(&entries).await
}

/// A watch sees what other clients create, change, delete and create anew,
/// and its revisions are those of the writes.
pub async fn a_watch_sees_changes_of_others(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_watch_sees_changes_of_others", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let (key, prefix) = (key(&["w", "7"]), Prefix::below(key(&["w"])));
    let mut watch = two.watch(&prefix).await?;
    watch.becomes_current().await?;
    for round in 0..3_u8 {
        let created = one.create(&key, &[round]).await?;
        watch.converges(&[entry(&key, &[round], created)]).await?;
        let updated = one.put(&key, Expected::At(created), b"").await?;
        watch.converges(&[entry(&key, b"", updated)]).await?;
        one.remove(&key, updated).await?;
        watch.converges(&[]).await?;
    }
    // Its own client's changes are no different.
    let created = two.create(&key, b"own").await?;
    watch.converges(&[entry(&key, b"own", created)]).await
}

/// A watch shows nothing of other prefixes, and nothing of other clusters.
pub async fn a_watch_keeps_to_its_prefix_and_cluster(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_watch_keeps_to_its_prefix_and_cluster", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let far = KeyValueClient::open(&run, subject, "c.d", "far").await?;
    let below_star = Prefix::below(key(&["*"]));
    let mut watch = two.watch(&Prefix::below(key(&["w"]))).await?;
    let mut star = two.watch(&below_star).await?;
    let mut single = two.watch(&Prefix::only(key(&["w", "1"]))).await?;
    let mut all = far.watch(&Prefix::ALL).await?;
    watch.becomes_current().await?;
    star.becomes_current().await?;
    single.becomes_current().await?;
    all.becomes_current().await?;
    let others: [&[&str]; 8] = [
        &["w"],
        &["work", "1"],
        &["W", "1"],
        &["v", "w", "1"],
        &["w.", "1"],
        &["d", "w", "1"],
        &["w-", "1"],
        &["a"],
    ];
    for parts in others {
        let revision = one.create(&key(parts), b"other").await?;
        one.put(&key(parts), Expected::At(revision), b"more")
            .await?;
    }
    far.create(&key(&["w", "far"]), b"far").await?;
    let inside = key(&["w", "1"]);
    let revision = one.create(&inside, b"inside").await?;
    let expected = [entry(&inside, b"inside", revision)];
    // The first that it shows is the one inside.
    let next = watch.next_change().await?;
    let right = Change::Put(expected[0].clone());
    run.check(next == right, || {
        format!("a watch of w showed {next:?}, which did not happen there")
    })?;
    let next = single.next_change().await?;
    run.check(next == right, || {
        format!("a watch of w.1 alone showed {next:?}, which did not happen there")
    })?;
    let inside = key(&["*", "1"]);
    let revision = one.create(&inside, b"star").await?;
    star.converges(&[entry(&inside, b"star", revision)]).await?;
    let found = far.list(&Prefix::ALL).await?;
    all.converges(&found).await?;
    run.check(all.seen.len() == 1, || {
        format!("a watch of another cluster showed {:?}", all.seen.keys())
    })
}

/// Under a burst of changes every watch comes to the last state: of all keys,
/// of some, and of a reader that was slow to begin.
pub async fn watches_converge_under_a_burst(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("watches_converge_under_a_burst", options);
    let clients = KeyValueClient::open_many(&run, subject, 4).await?;
    let reader = KeyValueClient::open(&run, subject, "c", "reader").await?;
    let prefixes = [
        Prefix::ALL,
        Prefix::below(key(&["w"])),
        Prefix::below(key(&["w", "1"])),
        Prefix::only(key(&["w", "1"])),
    ];
    let mut watches = Vec::new();
    for prefix in &prefixes {
        watches.push(reader.watch(prefix).await?);
    }
    let mut random = run.random();
    let each = (options.operations / 2).clamp(10, 2000);
    let mut writing = JoinSet::new();
    for (number, client) in clients.iter().cloned().enumerate() {
        writing.spawn(burst(client, random.fork(), (number, each)));
    }
    // The first follows meanwhile, the others come late.
    watches[0].becomes_current().await?;
    while !writing.is_empty() {
        while let Some(ended) = writing.try_join_next() {
            ended.map_err(|error| run.fail(error.to_string()))??;
        }
        let soon = std::time::Duration::from_millis(1);
        if let Ok(notice) = tokio::time::timeout(soon, watches[0].next()).await {
            notice?;
        }
    }
    joined(&run, writing).await?;
    let state = settled(&run, &clients).await?;
    for (prefix, watch) in prefixes.iter().zip(&mut watches) {
        let held = state.iter().filter(|entry| prefix.holds(&entry.key));
        watch.converges(&held.cloned().collect::<Vec<_>>()).await?;
    }
    Ok(())
}

/// Watches that are dropped, read or not, leave nothing running behind, and
/// the store works on.
pub async fn dropped_watches_end(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    const WATCHES: usize = 60;
    let run = Run::new("dropped_watches_end", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let key = key(&["w", "1"]);
    let mut revision = one.create(&key, b"0").await?;
    let mut kept = one.watch(&Prefix::ALL).await?;
    kept.becomes_current().await?;
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let mut open = Vec::new();
    for number in 0..WATCHES {
        let mut watch = one.watch(&Prefix::ALL).await?;
        if number % 2 == 0 {
            watch.becomes_current().await?;
        }
        open.push(watch);
    }
    drop(open);
    let wait = run.wait("the tasks of dropped watches end");
    // Others of this process may have started tasks too; a leak is one each.
    while tasks() > before + WATCHES / 3 {
        let found = format!("{} tasks, {before} before", tasks());
        wait.again_because(&found).await?;
    }
    for value in [b"1", b"2"] {
        revision = one.put(&key, Expected::At(revision), value).await?;
    }
    kept.converges(&[entry(&key, b"2", revision)]).await
}

/// Creates, changes and deletes keys that are this client's own.
async fn burst(
    client: KeyValueClient,
    mut random: Rng,
    (number, operations): (usize, usize),
) -> Result<(), Failure> {
    let names = ["1", "2", "3"].map(|name| format!("{name}-{number}"));
    let mut keys: Vec<Key> = names.iter().map(|name| key(&["w", name])).collect();
    keys.extend(names.iter().map(|name| key(&["w", "1", name])));
    keys.extend(names.iter().map(|name| key(&[name])));
    let mut revisions = vec![None; keys.len()];
    for operation in 0..operations {
        let at = random.usize(..keys.len());
        let (key, value) = (&keys[at], operation.to_string());
        revisions[at] = match revisions[at] {
            Some(revision) if random.u8(..3) == 0 => {
                client.remove(key, revision).await?;
                None
            }
            now => {
                let expected = Expected::from(now);
                let written = client.compare_and_set(key, expected, value.as_bytes());
                let Outcome::Done(revision) = written.await? else {
                    let reason = format!("a write of {key}, which nobody else writes, lost");
                    return Err(client.run.fail(reason));
                };
                Some(revision)
            }
        };
    }
    Ok(())
}

/// What is there, once two listings by different clients agree on it.
async fn settled(run: &Run, clients: &[KeyValueClient]) -> Result<Vec<Entry>, Failure> {
    let wait = run.wait("two clients list the same");
    loop {
        let one = clients[0].list(&Prefix::ALL).await?;
        if one == clients[1].list(&Prefix::ALL).await? {
            return Ok(one);
        }
        wait.again().await?;
    }
}

fn entry(key: &Key, value: &[u8], revision: divvy_core::store::Revision) -> Entry {
    Entry {
        key: key.clone(),
        value: value.into(),
        revision,
    }
}

fn key(parts: &[&str]) -> Key {
    Key::new(parts.iter().copied()).expect("the suite's own keys are valid")
}
