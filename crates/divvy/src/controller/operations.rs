//! Operations on the store, as the machine asks for them.

use std::time::Duration;

use divvy_core::lease::{Operation, Reply};
use divvy_core::store::{LeaseName, StoreError, StoreErrorKind};
use tokio::time::timeout;

use crate::store::Leases;

/// Carries out an operation within `limit`.
pub(super) async fn carry_out(
    store: &dyn Leases,
    worker: &LeaseName,
    operation: Operation,
    limit: Duration,
) -> Reply {
    let is_read = matches!(
        operation,
        Operation::Members | Operation::Groups | Operation::Holders(_) | Operation::Cooling(_)
    );
    match timeout(limit, ask(store, worker, operation)).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => Reply::Failed(error.kind(), error.to_string().into()),
        Err(_elapsed) => {
            // A read that was given up changed nothing.
            let kind = match is_read {
                true => StoreErrorKind::Unavailable,
                false => StoreErrorKind::Unknown,
            };
            Reply::Failed(kind, format!("no answer within {limit:?}").into())
        }
    }
}

async fn ask(
    store: &dyn Leases,
    worker: &LeaseName,
    operation: Operation,
) -> Result<Reply, StoreError> {
    Ok(match operation {
        Operation::OpenSession { session, ttl } => {
            Reply::Session(store.open_session(worker, session, ttl).await?)
        }
        Operation::Beat(heartbeat) => Reply::Beaten(store.beat(worker, &heartbeat).await?),
        Operation::Leave { session } => Reply::Left(store.leave(worker, session).await?),
        Operation::Members => {
            let (members, wishes) = tokio::try_join!(store.members(), store.wishes())?;
            Reply::Members(members, wishes)
        }
        Operation::Groups => Reply::Groups(store.groups().await?),
        Operation::Holders(keys) => Reply::Holders(store.holders(&keys).await?),
        Operation::Cooling(keys) => Reply::Cooling(store.cooling(&keys).await?),
        Operation::Acquire { claims, ttl } => {
            Reply::Acquired(store.acquire(worker, &claims, ttl).await?)
        }
        Operation::Renew { claims, ttl } => {
            Reply::Tenures(store.renew(worker, &claims, ttl).await?)
        }
        Operation::Release { claims } => Reply::Tenures(store.release(worker, &claims).await?),
        Operation::MarkMoved { keys, cooldown } => {
            store.mark_moved(&keys, cooldown).await?;
            Reply::Done
        }
        Operation::LogMoves(moves) => {
            store.log_moves(&moves).await?;
            Reply::Done
        }
    })
}
