//! Operations that nobody waits for any more.

use divvy_core::store::{Entry, Expected, Key, Outcome, Prefix, Revision};

use super::super::key_value_client::KeyValueClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::{Run, cancelled};
use super::super::subject::KeyValueSubject;

/// A write whose future is dropped half-way happens whole and once, or not at
/// all, perhaps later; the client and the key stay usable.
pub async fn a_cancelled_write_happens_once_or_never(
    subject: &dyn KeyValueSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("a_cancelled_write_happens_once_or_never", options);
    let one = KeyValueClient::open(&run, subject, "c", "one").await?;
    let two = KeyValueClient::open(&run, subject, "c", "two").await?;
    let mut random = run.random();
    let key = Key::new(["cancelled"]).expect("the suite's own keys are valid");
    let mut last = one.create(&key, b"0").await?;
    for round in 1..=(options.operations / 20).clamp(2, 200) {
        let (old, new) = ((round * 2 - 2).to_string(), (round * 2 - 1).to_string());
        let writing = one
            .store
            .compare_and_set(&key, Expected::At(last), new.as_bytes());
        let ended = cancelled(writing, &mut random).await;
        run.note(format_args!("one cancelled its write of {new}: {ended:?}"));
        // A further write settles it: then the cancelled one has either
        // happened before, or cannot any more.
        let next = (round * 2).to_string();
        last = settle(&two, &key, last, [&old, &new], &next).await?;
    }
    one.finds(&key, two_last(options).as_bytes(), last).await?;

    for number in 0..8 {
        let name = format!("{number}");
        let key = Key::new(["new", &name]).expect("the suite's own keys are valid");
        let creating = one.store.compare_and_set(&key, Expected::Absent, b"whole");
        let _whatever = cancelled(creating, &mut random).await;
    }
    let below = Prefix::below(Key::new(["new"]).expect("the suite's own keys are valid"));
    let partial = |entry: &&Entry| *entry.value != *b"whole";
    let found = two.list(&below).await?;
    run.check(found.iter().find(partial).is_none(), || {
        format!("a cancelled creation left {found:?}")
    })
}

/// The value that the last round writes.
fn two_last(options: &Options) -> String {
    ((options.operations / 20).clamp(2, 200) * 2).to_string()
}

/// Writes `next`, whatever became of the cancelled write of `new` over `old`.
async fn settle(
    client: &KeyValueClient,
    key: &Key,
    last: Revision,
    [old, new]: [&str; 2],
    next: &str,
) -> Result<Revision, Failure> {
    let wait = client.run.wait("a write after a cancelled one succeeds");
    loop {
        let found = client.get(key).await?;
        let is_old = |entry: &Entry| *entry.value == *old.as_bytes() && entry.revision == last;
        let is_new = |entry: &Entry| *entry.value == *new.as_bytes() && entry.revision > last;
        let Some(entry) = found.filter(|entry| is_old(entry) || is_new(entry)) else {
            // A stale read of what was there before is no fault.
            wait.again_because("neither the old nor the new value")
                .await?;
            continue;
        };
        let expected = Expected::At(entry.revision);
        let outcome = client.compare_and_set(key, expected, next.as_bytes());
        if let Outcome::Done(revision) = outcome.await? {
            return Ok(revision);
        }
        wait.again().await?;
    }
}
