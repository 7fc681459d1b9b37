//! Conditional writes, one at a time.

use divvy_core::store::{Expected, Key, Outcome, Revision};

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::KeyValueSubject;

/// A key is created only where there is none, and a lost creation leaves the
/// value as it is.
pub async fn a_creation_needs_absence(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_creation_needs_absence", options);
    let (one, two) = two_clients(&run, subject).await?;
    let key = key(&["leader"]);
    one.misses(&key).await?;
    let revision = one.create(&key, b"first").await?;
    two.finds(&key, b"first", revision).await?;
    two.loses(&key, Expected::Absent).await?;
    one.loses(&key, Expected::Absent).await?;
    one.finds(&key, b"first", revision).await?;
    two.finds(&key, b"first", revision).await?;
    // The same value is no excuse: somebody else wrote it.
    let outcome = two
        .compare_and_set(&key, Expected::Absent, b"first")
        .await?;
    run.check(outcome.is_conflict(), || {
        "creating a key anew with its own value must be a conflict".to_owned()
    })
}

/// A value is replaced only at its very revision, and a lost update leaves it
/// as it is.
pub async fn an_update_needs_the_revision(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("an_update_needs_the_revision", options);
    let (one, two) = two_clients(&run, subject).await?;
    let key = key(&["root"]);
    let first = one.create(&key, b"1").await?;
    let second = two.put(&key, Expected::At(first), b"2").await?;
    run.check(second > first, || format!("{second} is not above {first}"))?;
    one.loses(&key, Expected::At(first)).await?;
    one.finds(&key, b"2", second).await?;
    two.finds(&key, b"2", second).await?;
    let third = one.put(&key, Expected::At(second), b"3").await?;
    two.finds(&key, b"3", third).await?;
    two.loses(&key, Expected::At(second)).await?;
    two.loses(&key, Expected::At(first)).await?;
    two.finds(&key, b"3", third).await
}

/// A key is deleted only at its very revision, and only once.
pub async fn a_deletion_needs_the_revision(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_deletion_needs_the_revision", options);
    let (one, two) = two_clients(&run, subject).await?;
    let key = key(&["chunk", "1"]);
    let first = one.create(&key, b"1").await?;
    let second = one.put(&key, Expected::At(first), b"2").await?;
    deletion_loses(&two, &key, first).await?;
    two.finds(&key, b"2", second).await?;
    let deletion = two.remove(&key, second).await?;
    run.check(deletion > second, || {
        format!("the deletion's revision {deletion} is not above {second}")
    })?;
    one.misses(&key).await?;
    two.misses(&key).await?;
    for past in [first, second, deletion] {
        deletion_loses(&one, &key, past).await?;
        one.loses(&key, Expected::At(past)).await?;
    }
    one.misses(&key).await?;
    let anew = one.create(&key, b"again").await?;
    for past in [first, second, deletion] {
        deletion_loses(&two, &key, past).await?;
        two.loses(&key, Expected::At(past)).await?;
    }
    two.finds(&key, b"again", anew).await
}

/// Every write of a key has a higher revision than all before, also after it
/// was deleted.
pub async fn revisions_of_a_key_increase(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("revisions_of_a_key_increase", options);
    let (one, two) = two_clients(&run, subject).await?;
    let keys = [key(&["a"]), key(&["b"])];
    let mut last: [Option<Revision>; 2] = [None, None];
    for round in 0..5_u8 {
        for (key, last) in keys.iter().zip(&mut last) {
            let above = |next: Revision, last: &mut Option<Revision>| {
                let before = last.replace(next);
                run.check(before.is_none_or(|before| next > before), || {
                    format!("{key} went from revision {before:?} to {next}")
                })?;
                Ok::<_, Failure>(next)
            };
            let created = above(one.create(key, &[round]).await?, last)?;
            let updated = two.put(key, Expected::At(created), &[round, 1]).await?;
            let updated = above(updated, last)?;
            above(one.remove(key, updated).await?, last)?;
        }
    }
    Ok(())
}

/// A write that succeeded and is sent again, because nobody knew, loses.
pub async fn a_repeated_write_is_a_conflict(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_repeated_write_is_a_conflict", options);
    let (one, two) = two_clients(&run, subject).await?;
    let key = key(&["w", "7"]);
    let created = one.create(&key, b"beat 1").await?;
    for client in [&one, &two] {
        let again = client.compare_and_set(&key, Expected::Absent, b"beat 1");
        repeated(&run, again.await?)?;
    }
    let updated = one.put(&key, Expected::At(created), b"beat 2").await?;
    for client in [&one, &two] {
        let again = client.compare_and_set(&key, Expected::At(created), b"beat 2");
        repeated(&run, again.await?)?;
    }
    one.finds(&key, b"beat 2", updated).await?;
    one.remove(&key, updated).await?;
    for client in [&one, &two] {
        repeated(&run, client.delete(&key, updated).await?)?;
    }
    one.misses(&key).await
}

/// Revisions that no store has given yet are conflicts, not errors, however
/// large their numbers are.
pub async fn impossible_revisions_are_conflicts(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("impossible_revisions_are_conflicts", options);
    let (one, two) = two_clients(&run, subject).await?;
    let (key, absent) = (key(&["key"]), key(&["absent"]));
    let revision = one.create(&key, b"value").await?;
    let n = revision.get();
    // Also those that a float, or a signed number, takes for the real one.
    let wrong = [
        n + 1,
        n ^ (1 << 32),
        n ^ (1 << 53),
        n ^ (1 << 62),
        n | 1 << 63,
        i64::MAX as u64,
        u64::MAX,
    ];
    for at in wrong.into_iter().filter_map(Revision::new) {
        one.loses(&key, Expected::At(at)).await?;
        one.loses(&absent, Expected::At(at)).await?;
        deletion_loses(&two, &key, at).await?;
        deletion_loses(&two, &absent, at).await?;
    }
    two.misses(&absent).await?;
    two.finds(&key, b"value", revision).await
}

async fn two_clients(
    run: &Run,
    subject: &dyn KeyValueSubject,
) -> Result<(KeyValueClient, KeyValueClient), Failure> {
    let one = KeyValueClient::open(run, subject, "c", "one").await?;
    let two = KeyValueClient::open(run, subject, "c", "two").await?;
    Ok((one, two))
}

fn key(parts: &[&str]) -> Key {
    Key::new(parts.iter().copied()).expect("the suite's own keys are valid")
}

async fn deletion_loses(
    client: &KeyValueClient,
    key: &Key,
    revision: Revision,
) -> Result<(), Failure> {
    let outcome = client.delete(key, revision).await?;
    client.run.check(outcome.is_conflict(), || {
        format!("a deletion of {key} at {revision} must be a conflict")
    })
}

fn repeated(run: &Run, outcome: Outcome<Revision>) -> Result<(), Failure> {
    run.check(outcome.is_conflict(), || {
        "a write that was repeated must be a conflict".to_owned()
    })
}
