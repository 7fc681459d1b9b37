//! Watching what the machine wants to know of.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::Watched;
use divvy_core::store::{Prefix, StoreError};
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

use super::driver::Input;
use super::error::ManagerError;
use super::retry::Tries;
use crate::store::{KeyValue, Notice, Watch};

/// What a watch is begun with.
#[derive(Debug, Clone)]
pub(super) struct Subscribing {
    pub(super) watched: Watched,
    /// How long one try may take.
    pub(super) limit: Duration,
    pub(super) tries: Tries,
}

/// Tells of every change of what is watched, for ever.
pub(super) async fn follow(
    store: Arc<dyn KeyValue>,
    subscribing: Subscribing,
    driver: Sender<Input>,
) {
    let Some(mut watch) = begin(&*store, subscribing, &driver).await else {
        return;
    };
    let mut is_current = false;
    loop {
        let input = match watch.next().await {
            Ok(Notice::Changed(change)) => Input::Seen(change, watch.connection()),
            // What was there at first has been told. Later it means that
            // something was missed, perhaps with the life of the store.
            Ok(Notice::Current) if !is_current => {
                is_current = true;
                continue;
            }
            Ok(Notice::Current) => Input::Doubt,
            Err(error) => Input::Trouble(error),
        };
        if driver.send(input).await.is_err() {
            return;
        }
    }
}

/// Begins, until that succeeds; nothing if nobody waits for it any more.
/// Meanwhile the machine reads what it would be told.
async fn begin(
    store: &dyn KeyValue,
    subscribing: Subscribing,
    driver: &Sender<Input>,
) -> Option<Watch> {
    let Subscribing {
        watched,
        limit,
        mut tries,
    } = subscribing;
    let prefix = match watched {
        Watched::Key(key) => Prefix::only(key),
        Watched::Below(prefix) => prefix,
    };
    loop {
        let error = match timeout(limit, store.watch(&prefix)).await {
            Ok(Ok(watch)) => return Some(watch),
            Ok(Err(error)) => error,
            Err(_elapsed) => StoreError::unavailable(format_args!("no answer within {limit:?}")),
        };
        let wait = tries.failed();
        let input = match tries.is_telling() {
            true => {
                let text = format!("a subscription fails again and again, trying on: {error}");
                Input::Problem(ManagerError::Problem(text.into()))
            }
            false => Input::Trouble(error),
        };
        driver.send(input).await.ok()?;
        sleep(wait).await;
    }
}
