//! Operations on the store, as the machine asks for them.

use std::time::Duration;

use divvy_core::leader::{Operation, Reply};
use divvy_core::store::{StoreError, StoreErrorKind};
use tokio::time::timeout;

use crate::store::KeyValue;

/// Carries out an operation within `limit`. What failed is told beside the
/// reply, for people.
pub(super) async fn carry_out(
    store: &dyn KeyValue,
    operation: Operation,
    limit: Duration,
) -> (Reply, Option<StoreError>) {
    let is_write = operation.is_write();
    match timeout(limit, ask(store, operation)).await {
        Ok(Ok(reply)) => (reply, None),
        Ok(Err(error)) => (Reply::Failed(error.kind()), Some(error)),
        Err(_elapsed) => {
            // A read that was given up changed nothing.
            let kind = match is_write {
                true => StoreErrorKind::Unknown,
                false => StoreErrorKind::Unavailable,
            };
            let text = format!("no answer within {limit:?}");
            (Reply::Failed(kind), Some(StoreError::new(kind, text)))
        }
    }
}

async fn ask(store: &dyn KeyValue, operation: Operation) -> Result<Reply, StoreError> {
    Ok(match operation {
        Operation::Get(key) => Reply::Got(store.get(&key).await?),
        Operation::List(prefix) => Reply::Listed(store.list(&prefix).await?),
        Operation::CompareAndSet {
            key,
            expected,
            value,
        } => Reply::Written(store.compare_and_set(&key, expected, &value).await?),
        Operation::Delete { key, revision } => Reply::Deleted(store.delete(&key, revision).await?),
    })
}
