//! Removal of deletion markers, so that those of keys that are never used
//! again don't stay for ever.
//!
//! A marker is left for a while, because a watch that has not got to it would
//! miss the deletion. Then, if it is still the last message of its subject, it
//! and whatever was before it is purged: never something after it, so that a
//! value that is written meanwhile is not touched. All of it is best effort,
//! and whoever lists the keys finds the markers that others left.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Weak;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::api;
use super::fault::Fault;
use super::shared::Shared;

/// How long a marker stays, for watches to see it.
pub(super) const MARKERS_STAY: Duration = Duration::from_secs(10);
/// Markers that wait; beyond, they are left to whoever lists next.
pub(super) const WAITING_MAX: usize = 10_000;

/// A deletion marker.
#[derive(Debug)]
pub(super) struct Marker {
    pub(super) subject: String,
    pub(super) sequence: u64,
}

/// Removes the markers that come in, each when it has stayed long enough. Ends
/// when the store does.
pub(super) async fn run(shared: Weak<Shared>, mut markers: mpsc::Receiver<Marker>) {
    let mut due: VecDeque<(Instant, String)> = VecDeque::new();
    let mut sequences: BTreeMap<String, u64> = BTreeMap::new();
    loop {
        let first = due.front().map(|(at, _)| *at);
        let ripe = async {
            match first {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            marker = markers.recv() => {
                let Some(Marker { subject, sequence }) = marker else {
                    return;
                };
                if due.len() < WAITING_MAX && sequences.insert(subject.clone(), sequence).is_none() {
                    due.push_back((Instant::now() + MARKERS_STAY, subject));
                }
            }
            () = ripe => {
                let Some((_, subject)) = due.pop_front() else {
                    continue;
                };
                let (Some(sequence), Some(shared)) = (sequences.remove(&subject), shared.upgrade())
                else {
                    continue;
                };
                let marker = Marker { subject, sequence };
                if let Err(fault) = remove(&shared, &marker).await {
                    tracing::debug!(%fault, "a deletion marker stays");
                }
            }
        }
    }
}

async fn remove(shared: &Shared, marker: &Marker) -> Result<(), Fault> {
    let (link, stream) = (&shared.link, &shared.bucket.stream);
    let deadline = shared.deadline();
    let last = api::last_message(link, deadline, stream, &marker.subject).await?;
    let is_same = |last: &api::Stored| last.is_marker && last.sequence == marker.sequence;
    if !last.as_ref().is_some_and(is_same) {
        return Ok(());
    }
    // All below the sequence: the marker itself and nothing newer.
    let up_to = json!({ "filter": marker.subject, "seq": marker.sequence + 1 });
    let subject = format!("$JS.API.STREAM.PURGE.{stream}");
    let _done: IgnoredAny = api::call(link, deadline, &subject, &up_to).await?;
    Ok(())
}
