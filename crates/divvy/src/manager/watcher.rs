//! Watching what the machine wants to know of.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::{Event, Watched};
use divvy_core::store::Prefix;
use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use super::driver::Input;
use crate::store::backoff::Backoff;
use crate::store::{KeyValue, Notice};

/// Delays between two tries to begin a watch.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LONGEST: Duration = Duration::from_secs(2);

/// Tells of every change of what is watched, for ever.
pub(super) async fn follow(store: Arc<dyn KeyValue>, watched: Watched, driver: Sender<Input>) {
    let prefix = match watched {
        Watched::Key(key) => Prefix::only(key),
        Watched::Below(prefix) => prefix,
    };
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
    let mut watch = loop {
        match store.watch(&prefix).await {
            Ok(watch) => break watch,
            Err(error) => {
                if driver.send(Input::Trouble(error)).await.is_err() {
                    return;
                }
            }
        }
        sleep(backoff.delay()).await;
    };
    let mut is_current = false;
    loop {
        let input = match watch.next().await {
            Ok(Notice::Changed(change)) => Input::Event(Event::Seen(change)),
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
