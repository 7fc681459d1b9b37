//! The consumers of all partitions, also of those that nobody owns yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use divvy_core::Partitions;
use divvy_core::store::{StoreError, StoreErrorKind};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::consumer::{Begin, Wanted};
use super::error::SubscriptionError;
use super::health::count;
use super::shared::Shared;
use crate::manager::PartitionSource;

/// While this worker leads, makes consumers that are missing.
pub(super) async fn run(
    shared: Arc<Shared>,
    mut leads: watch::Receiver<bool>,
    source: Arc<dyn PartitionSource>,
) {
    while leads.wait_for(|leads| *leads).await.is_ok() {
        let listed = timeout(shared.jetstream.operation_timeout, source.list_partitions()).await;
        let why = match listed {
            Ok(Ok(partitions)) => match ensure(&shared, &partitions).await {
                Ok(made) => {
                    tracing::debug!(made, "every partition has a consumer");
                    None
                }
                Err(error) => Some(error.to_string()),
            },
            Ok(Err(error)) => Some(format!("the source of partitions: {error}")),
            Err(_elapsed) => Some("the source of partitions does not answer".to_owned()),
        };
        if let Some(why) = why {
            tracing::warn!("consumers of all partitions: {why}");
            count(&shared.metrics.errors);
        }
        let delay = shared.reconcile_delay();
        tokio::select! {
            _ = leads.wait_for(|leads| !*leads) => {}
            () = source.changed() => {}
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// Makes what is missing; gives how many those were.
pub(super) async fn ensure(
    shared: &Arc<Shared>,
    partitions: &Partitions,
) -> Result<usize, SubscriptionError> {
    let names = shared.jetstream.names().await;
    let names = names.map_err(|fault| fault.of_read("names of consumers"))?;
    let there: BTreeSet<String> = names.into_iter().collect();
    let mut missing = Vec::new();
    for partition in partitions {
        // All of them are checked before anything is made.
        let wanted = Wanted::new(&shared.settings, partition)?;
        if !there.contains(&wanted.name) {
            missing.push(wanted);
        }
    }
    if !missing.is_empty() {
        shared.look_at_stream().await?;
    }
    for wanted in &missing {
        shared.check_subject(&wanted.filter)?;
    }
    let count = missing.len();
    let mut making = JoinSet::new();
    for wanted in missing {
        let shared = Arc::clone(shared);
        making.spawn(async move { make(&shared, &wanted).await });
    }
    while let Some(made) = making.join_next().await {
        made.expect("making a consumer does not panic")?;
    }
    Ok(count)
}

/// Makes a consumer. Among thousands, one or another may have to be tried again;
/// one that was made without an answer is found as it is.
async fn make(shared: &Shared, wanted: &Wanted) -> Result<(), StoreError> {
    let mut failures = 0;
    loop {
        let made = shared.jetstream.create(wanted, Begin::All).await;
        match made.map_err(|fault| shared.jetstream.explained(fault, &wanted.name)) {
            Err(error)
                if error.kind() == StoreErrorKind::Unavailable
                    && failures < shared.settings.max_retries =>
            {
                tracing::debug!(%error, "tried again");
                tokio::time::sleep(shared.settings.retry().delay(failures)).await;
                failures += 1;
            }
            made => return made.map(|_found| ()),
        }
    }
}

/// Deletes what belongs to no partition any more.
pub(super) async fn prune(
    shared: &Arc<Shared>,
    partitions: &Partitions,
) -> Result<usize, SubscriptionError> {
    let mut kept = BTreeSet::new();
    for partition in partitions {
        kept.insert(shared.settings.consumer(partition)?);
    }
    let names = shared.jetstream.names().await;
    let names = names.map_err(|fault| fault.of_read("names of consumers"))?;
    let own = shared.settings.consumers();
    let mut count = 0;
    for name in names
        .iter()
        .filter(|name| name.starts_with(&own) && !kept.contains(*name))
    {
        let deleted = shared.jetstream.delete(name).await;
        deleted.map_err(|fault| fault.of_read(format_args!("consumer '{name}'")))?;
        count += 1;
    }
    Ok(count)
}
