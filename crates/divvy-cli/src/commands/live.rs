//! A live cluster, for the commands that look at one.

use std::future::Future;

use anyhow::{Context as _, anyhow};
use divvy::observer::{Observer, Snapshot};
use divvy::store::{StoreError, StoreErrorKind};

use crate::args::ClusterArgs;
use crate::commands::worker::store_of;
use crate::failure::Failure;
use crate::spinner::Spinner;

/// Runs something on the network.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")
        .map_err(Failure::Failed)?;
    runtime.block_on(work)
}

/// Opens the store of a cluster, to look at it.
pub(super) async fn open(at: &ClusterArgs) -> Result<Observer, Failure> {
    let url = store_of(at.store.as_ref())?;
    let settings = at.reach.settings()?;
    let _spinner = Spinner::start("opening the store");
    Observer::open(&url, &settings, at.mode)
        .await
        .map_err(refused)
}

pub(super) fn refused(error: StoreError) -> Failure {
    match error.kind() {
        StoreErrorKind::Invalid => Failure::Usage(error.to_string()),
        _ => Failure::Failed(anyhow!("{error}")),
    }
}

/// Whether there is such a worker; otherwise which there are.
pub(super) fn known_worker(snapshot: &Snapshot, name: &str) -> Result<(), Failure> {
    if snapshot.worker(name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = snapshot.workers.iter().map(|w| w.name.as_str()).collect();
    let there = match names.len() {
        0 => "there are none".to_owned(),
        1..=10 => format!("there are {}", names.join(", ")),
        count => format!("there are {count}, such as {}", names[0]),
    };
    Err(Failure::Failed(anyhow!("worker '{name}': {there}")))
}

/// Whether there is such a partition; otherwise how many there are.
pub(super) fn known_partition(snapshot: &Snapshot, name: &str) -> Result<(), Failure> {
    if snapshot.partition(name).is_some() {
        return Ok(());
    }
    let there = match snapshot.partitions.as_slice() {
        [] => "there are none".to_owned(),
        [first, .., last] => format!(
            "there are {}, from {} to {}",
            snapshot.partitions.len(),
            first.name,
            last.name
        ),
        [one] => format!("there is {}", one.name),
    };
    Err(Failure::Failed(anyhow!("partition '{name}': {there}")))
}
