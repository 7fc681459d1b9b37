//! A live cluster, for the commands that look at one.

use std::future::Future;

use anyhow::anyhow;
use divvy::Control;
use divvy::observer::{Mode, Observer, Snapshot};
use divvy::store::{StoreError, StoreErrorKind};

use crate::args::ClusterArgs;
use crate::commands::worker::store_of;
use crate::config::nearest;
use crate::failure::Failure;
use crate::runtime;
use crate::spinner::Spinner;

/// Runs something on the network.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime::here().map_err(Failure::Failed)?;
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

/// That nobody has ever written to the store as this cluster, if so. Where no
/// mode was asked for, it was found by what has been written.
pub(super) async fn absence(at: &ClusterArgs, seen: &Snapshot) -> Option<Failure> {
    let is_there = !seen.workers.is_empty()
        || !seen.partitions.is_empty()
        || seen.version.is_some()
        || seen.wishes != Control::default();
    if is_there || at.mode.is_none() {
        return None;
    }
    let (cluster, mode, store) = (&at.reach.cluster, seen.mode, &seen.store);
    let mut text = format!(
        "there is no cluster '{cluster}' in {mode} mode in {store}: no worker is there, and if \
         one was, the store has lost its data since"
    );
    match found(at).await {
        // Its moves are remembered, or it is in both modes.
        Ok(found) if found == mode => return None,
        Err(error) if error.kind() == StoreErrorKind::Invalid => return None,
        Ok(found) => text += &format!("; one of that name is in {found} mode"),
        Err(_) => {}
    }
    Some(Failure::Failed(anyhow!(text)))
}

/// The mode that a cluster of this name is found in.
async fn found(at: &ClusterArgs) -> Result<Mode, StoreError> {
    let nowhere = |why: Failure| StoreError::unavailable(why.to_string());
    let url = store_of(at.store.as_ref()).map_err(nowhere)?;
    let settings = at.reach.settings().map_err(nowhere)?;
    let mut observer = Observer::open(&url, &settings, None).await?;
    Ok(observer.look().await?.mode)
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
        count => {
            let near = nearest(name, names.iter().copied()).unwrap_or(names[0]);
            format!("there are {count}, such as {near}")
        }
    };
    Err(Failure::Failed(anyhow!(
        "there is no worker '{name}'; {there}"
    )))
}

/// Whether there is such a partition; otherwise how many there are.
pub(super) fn known_partition(snapshot: &Snapshot, name: &str) -> Result<(), Failure> {
    if snapshot.partition(name).is_some() {
        return Ok(());
    }
    let prefix = format!("{name}:");
    let units = snapshot.partitions.iter();
    let units: Vec<&str> = units
        .map(|unit| unit.name.as_str())
        .filter(|unit| unit.starts_with(&prefix))
        .collect();
    if let Some((first, last)) = ends(&units) {
        return Err(Failure::Failed(anyhow!(
            "'{name}' is a workload: name one of its units, {first} to {last}"
        )));
    }
    let all: Vec<&str> = snapshot
        .partitions
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let there = match (all.len(), ends(&all)) {
        (1, Some((one, _))) => format!("there is {one}"),
        (count, Some((first, last))) => format!("there are {count}, from {first} to {last}"),
        (_, None) => "there are none".to_owned(),
    };
    Err(Failure::Failed(anyhow!(
        "there is no partition '{name}'; {there}"
    )))
}

/// The first and the last of them, by number where they have one.
fn ends<'a>(names: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let order = |name: &&&str| {
        let (group, number) = name.rsplit_once(':').unwrap_or((name, ""));
        (
            group.to_owned(),
            number.parse::<u64>().ok(),
            number.to_owned(),
        )
    };
    let first = names.iter().min_by_key(order)?;
    let last = names.iter().max_by_key(order)?;
    Some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_are_by_number() {
        assert_eq!(ends(&["a:9", "a:10", "a:0"]), Some(("a:0", "a:10")));
        assert_eq!(ends(&["b:1", "a:x", "a:2"]), Some(("a:x", "b:1")));
        assert_eq!(ends(&["one"]), Some(("one", "one")));
        assert_eq!(ends(&[]), None);
    }
}
