//! Waiting for one's turn, and not for ever.

use divvy::store::{Expected, KeyValue, Leases, StoreErrorKind, StoreSettings, Tenure};
use divvy_testbed::until;

use crate::part::Part;
use crate::scratch::{SOON, Scratch, claim, create, hasty, key, open, worker};

/// Verifies what a process does to the others that stands still in the middle
/// of its turn: they fail in time, say which process it is, and nothing that
/// failed so happens later.
#[tokio::test]
async fn a_process_stopped_in_its_turn_is_named_and_its_end_frees_the_others() {
    let scratch = Scratch::new();
    let patient = scratch.open().await;
    let hurried = open(&scratch.database(), &hasty()).await.unwrap();
    let mut part = Part::start("hold the turn", &scratch.database());
    assert_eq!(part.says(), "held");
    part.stop();
    let name = key("k");
    let write = hurried.compare_and_set(&name, Expected::Absent, b"late");
    let error = write.await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    let named = format!("process {}'s turn", part.id());
    assert!(error.to_string().contains(&named), "{error}");
    let claims: Vec<_> = (0..3000).map(|n| claim(n, u128::from(n))).collect();
    let error = hurried
        .renew(&worker("w"), &claims, SOON)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    let error = open(&scratch.database(), &hasty()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains(&named), "{error}");
    // Reading needs no turn.
    assert_eq!(hurried.get(&key("k")).await.unwrap(), None);

    part.kill();
    create(&patient, "k", b"mine").await;
    // The hurried one's thread has come to its turn as well, and found that
    // nobody waits for what it was to do.
    until(SOON, "the hurried one writes again", async || {
        let mine = [claim(1, 7)];
        let renewed = hurried.renew(&worker("w"), &mine, SOON).await;
        renewed.is_ok_and(|tenures| tenures == [Tenure::Over])
    })
    .await;
    assert_eq!(
        *hurried.get(&key("k")).await.unwrap().unwrap().value,
        *b"mine"
    );
}

#[tokio::test]
async fn a_write_that_nobody_waits_for_does_not_happen() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let mut part = Part::start("hold the turn", &scratch.database());
    assert_eq!(part.says(), "held");
    let key = key("k");
    let write = store.compare_and_set(&key, Expected::Absent, b"unwanted");
    // Long enough for the write to be queued, and then it is dropped.
    tokio::select! {
        biased;
        _ = write => panic!("it is not our turn"),
        () = queued(&part) => {}
    }
    part.kill();
    create(&store, "k", b"wanted").await;
}

/// Until this process waits for a lock that a part holds.
async fn queued(part: &Part) {
    let holder = format!(" {} ", part.id());
    until(SOON, "a write waits for its turn", async || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let mut lines = locks.lines().skip_while(|line| !line.contains(&holder));
        lines.nth(1).is_some_and(|next| next.contains("->"))
    })
    .await;
}

/// Verifies the same of a process that stands still while it copies the log:
/// the others go on until the log is long, and then say who keeps it so.
#[tokio::test]
async fn a_process_stopped_while_it_copies_the_log_is_named() {
    let scratch = Scratch::new();
    let settings = StoreSettings {
        connect_timeout: SOON,
        ..hasty()
    };
    let store = open(&scratch.database(), &settings).await.unwrap();
    let mut options = std::fs::OpenOptions::new();
    let copying = options.write(true).create(true).truncate(false);
    let copying = copying.open(scratch.beside("-copy")).unwrap();
    copying.lock().unwrap();
    let value = vec![7; store.value_bytes_max()];
    let named = format!("process {} copies", std::process::id());
    let mut number = 0;
    until(SOON, "the log is long, and it is said why", async || {
        number += 1;
        let (name, absent) = (key(&format!("k{number}")), Expected::Absent);
        let written = store.compare_and_set(&name, absent, &value).await;
        written.is_err_and(|error| error.to_string().contains(&named))
    })
    .await;
    copying.unlock().unwrap();
    until(SOON, "it goes on", async || {
        let mine = [claim(1, 7)];
        store.renew(&worker("w"), &mine, SOON).await.is_ok()
    })
    .await;
}
