//! Writers that meet.

use std::sync::Arc;

use divvy_core::store::{Expected, Key, Outcome, Revision};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;

/// Clients that race each other.
const CLIENTS: usize = 8;

/// Of updates that expect the same revision, exactly one happens, and it is
/// the one that is told so.
pub async fn one_of_many_updates_wins(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("one_of_many_updates_wins", options);
    let clients = KeyValueClient::open_many(&run, subject, CLIENTS).await?;
    let key = Key::new(["contended"]).expect("the suite's own keys are valid");
    let mut revision = clients[0].create(&key, b"start").await?;
    for _ in 0..rounds(options) {
        let (winner, next) = one_winner(&run, &clients, &key, Expected::At(revision)).await?;
        run.check(next > revision, || {
            format!("{next} is not above {revision}")
        })?;
        revision = next;
        for client in &clients[..2] {
            client.finds(&key, &[winner], revision).await?;
        }
    }
    Ok(())
}

/// Of creations of one key, exactly one happens, again after each deletion.
pub async fn one_of_many_creations_wins(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("one_of_many_creations_wins", options);
    let clients = KeyValueClient::open_many(&run, subject, CLIENTS).await?;
    let key = Key::new(["contended"]).expect("the suite's own keys are valid");
    for round in 0..rounds(options) {
        let (winner, revision) = one_winner(&run, &clients, &key, Expected::Absent).await?;
        clients[round % CLIENTS]
            .finds(&key, &[winner], revision)
            .await?;
        let deletion = one_deletion(&run, &clients, &key, revision).await?;
        run.check(deletion > revision, || {
            format!("the deletion {deletion} is not above {revision}")
        })?;
        clients[round % CLIENTS].misses(&key).await?;
    }
    Ok(())
}

/// A deletion and an update of the same revision never both happen.
pub async fn a_deletion_and_an_update_have_one_winner(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_deletion_and_an_update_have_one_winner", options);
    let clients = KeyValueClient::open_many(&run, subject, 2).await?;
    let (deleter, updater) = (&clients[0], &clients[1]);
    for round in 0..rounds(options) {
        let name = format!("k{round}");
        let key = Key::new([name.as_str()]).expect("the suite's own keys are valid");
        let revision = deleter.create(&key, b"old").await?;
        let deleting = deleter.delete(&key, revision);
        let updating = updater.compare_and_set(&key, Expected::At(revision), b"new");
        // Each goes first in every second round.
        let (deletion, update) = match round % 2 {
            0 => tokio::join!(deleting, updating),
            _ => {
                let (update, deletion) = tokio::join!(updating, deleting);
                (deletion, update)
            }
        };
        match (deletion?, update?) {
            (Outcome::Done(_), Outcome::Conflict) => updater.misses(&key).await?,
            (Outcome::Conflict, Outcome::Done(at)) => deleter.finds(&key, b"new", at).await?,
            both => {
                let reason = format!("a deletion and an update of one revision became {both:?}");
                return Err(run.fail(reason));
            }
        }
    }
    Ok(())
}

/// A counter that many clients increase by compare-and-set ends at exactly
/// their number, each step written once.
pub async fn concurrent_increments_are_all_counted(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("concurrent_increments_are_all_counted", options);
    let clients = KeyValueClient::open_many(&run, subject, CLIENTS).await?;
    let key = Key::new(["counter"]).expect("the suite's own keys are valid");
    clients[0].create(&key, b"").await?;
    let each = (options.operations / 16).clamp(1, 250);
    let mut counting = JoinSet::new();
    for (number, client) in clients.iter().cloned().enumerate() {
        let key = key.clone();
        // The value is the list of who counted: nothing can be lost in a sum.
        counting.spawn(async move {
            for _ in 0..each {
                increment(&client, &key, number as u8).await?;
            }
            Ok(())
        });
    }
    joined(&run, counting).await?;
    let wait = run.wait("the counter is at its end");
    loop {
        let found = clients[0].get(&key).await?;
        let steps = found.map_or_else(|| Arc::from([]), |entry| entry.value);
        let count_of = |number: usize| steps.iter().filter(|who| **who as usize == number).count();
        if (0..CLIENTS).all(|number| count_of(number) == each) {
            return run.check(steps.len() == each * CLIENTS, || {
                "somebody else has counted".to_owned()
            });
        }
        let counts: Vec<_> = (0..CLIENTS).map(count_of).collect();
        let found = format!("{counts:?}, each should be {each}");
        wait.again_because(&found).await?;
    }
}

/// Adds one step of client `number` to the list at `key`.
async fn increment(client: &KeyValueClient, key: &Key, number: u8) -> Result<(), Failure> {
    let wait = client.run.wait("a contended write succeeds at last");
    loop {
        if let Some(entry) = client.get(key).await? {
            let mut steps = entry.value.to_vec();
            steps.push(number);
            let expected = Expected::At(entry.revision);
            let outcome = client.compare_and_set(key, expected, &steps).await?;
            if !outcome.is_conflict() {
                return Ok(());
            }
        }
        wait.again().await?;
    }
}

fn rounds(options: &Options) -> usize {
    (options.operations / 20).clamp(1, 1000)
}

/// Lets every client write its number, and gives the one that won.
async fn one_winner(
    run: &Run,
    clients: &[KeyValueClient],
    key: &Key,
    expected: Expected,
) -> Result<(u8, Revision), Failure> {
    let start = Arc::new(Barrier::new(clients.len()));
    let mut racing = JoinSet::new();
    for (number, client) in clients.iter().cloned().enumerate() {
        let (key, start) = (key.clone(), Arc::clone(&start));
        racing.spawn(async move {
            start.wait().await;
            let number = number as u8;
            let outcome = client.compare_and_set(&key, expected, &[number]).await?;
            Ok(outcome.done().map(|revision| (number, revision)))
        });
    }
    let won: Vec<_> = joined(run, racing).await?.into_iter().flatten().collect();
    run.check(won.len() == 1, || {
        format!("of {CLIENTS} writes that expect {expected:?}, these happened: {won:?}")
    })?;
    Ok(won[0])
}

/// Lets every client delete, and gives the one deletion that happened.
async fn one_deletion(
    run: &Run,
    clients: &[KeyValueClient],
    key: &Key,
    revision: Revision,
) -> Result<Revision, Failure> {
    let mut racing = JoinSet::new();
    for client in clients {
        let (client, key) = (client.clone(), key.clone());
        racing.spawn(async move { Ok(client.delete(&key, revision).await?.done()) });
    }
    let won: Vec<_> = joined(run, racing).await?.into_iter().flatten().collect();
    run.check(won.len() == 1, || {
        format!("of {CLIENTS} deletions at {revision}, these happened: {won:?}")
    })?;
    Ok(won[0])
}

/// What all tasks gave, or the first failure.
pub(in super::super) async fn joined<T: 'static>(
    run: &Run,
    mut tasks: JoinSet<Result<T, Failure>>,
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::with_capacity(tasks.len());
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.map_err(|error| run.fail(format!("a client stopped: {error}")))?;
        all.push(ended?);
    }
    Ok(all)
}
