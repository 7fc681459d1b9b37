//! Partitions that do not start: with another worker they do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{EventKind, Grant, HookError, Hooks};
use divvy_testbed::until;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// Fails with even partitions, and never returns from odd ones.
#[derive(Default)]
struct Lame {
    stopped: Arc<Mutex<BTreeSet<String>>>,
}

#[async_trait]
impl Hooks for Lame {
    async fn assigned(&self, partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        let number: u32 = partition.segments().nth(1).unwrap().parse()?;
        match number % 2 {
            0 => Err("it never starts here".into()),
            _ => std::future::pending().await,
        }
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        self.stopped.lock().unwrap().insert(partition.to_string());
        Ok(())
    }
}

/// What fails or hangs with one worker is handed to the other, what hung is
/// stopped first, and the failing worker keeps its lease all the time.
pub(crate) async fn what_does_not_start_is_handed_on(bed: Bed) {
    let mut fleet = Fleet::new(bed, 8);
    fleet.settings.leader.start_backoff_max = SOON * 2;
    fleet.join("sound").await;
    fleet.owned().await;
    // Of the other alone, and enough for what fails at once: on a busy machine
    // everything takes its time.
    fleet.settings.leader.start_deadline = Duration::from_secs(2);
    let lame = Lame::default();
    let stopped = Arc::clone(&lame.stopped);
    let number = fleet.join_with("lame", lame).await;
    let tried = |fleet: &mut Fleet| -> BTreeSet<String> {
        let events = fleet.events(number).iter();
        let tried = events.filter_map(|event| match &event.kind {
            EventKind::Assigned { partition, .. } => Some(partition.to_string()),
            _ => None,
        });
        tried.collect()
    };
    until(SOON, "the other got its share", async || {
        tried(&mut fleet).len() == 4
    })
    .await;
    until(SOON, "the sound one has everything again", async || {
        fleet.counts() == [8, 0]
    })
    .await;
    let odd = |name: &&String| name.as_bytes().last().is_some_and(|digit| digit % 2 == 1);
    let hung: BTreeSet<String> = tried(&mut fleet).iter().filter(odd).cloned().collect();
    assert_eq!(*stopped.lock().unwrap(), hung);
    let failures = fleet.events(number).iter().filter(
        |event| matches!(&event.kind, EventKind::Error(error) if error.to_string().contains("does not start here")),
    );
    assert_eq!(failures.count(), 4, "each is told once");
    fleet.end().await;
}
