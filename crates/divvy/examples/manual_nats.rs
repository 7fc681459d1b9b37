//! A transport of your own: a plain subscription of core NATS for each owned
//! partition. Nothing is stored: what comes while nobody owns a partition is
//! gone, which may be just right for readings of sensors.
//!
//! ```console
//! $ cargo run --release -p divvy --features nats --example manual_nats -- nats://localhost:4222 a
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_nats::{Client, Subscriber};
use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
use divvy::store::{StoreSettings, StoreUrl, nats};
use futures_util::StreamExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What tells a partition's reader to end, and its end.
type Running = (oneshot::Sender<()>, JoinHandle<()>);

struct Readings {
    client: Client,
    /// What runs, by partition: how to ask it to end, and how to wait for that.
    running: Mutex<BTreeMap<String, Running>>,
}

#[async_trait]
impl Hooks for Readings {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        // An error here is reported, and the partition is offered again.
        let subject = partition.subject_from("{prefix}.{keys}", "readings")?;
        let messages = self.client.subscribe(subject).await?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(read(messages, grant, stopped));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(partition.to_string(), (stop, task));
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        let found = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.remove(partition.as_str())
        };
        if let Some((stop, task)) = found {
            // Only when this returns does the next owner begin.
            let _ended = stop.send(());
            task.await?;
        }
        Ok(())
    }
}

/// Reads until it is asked to end or the grant is over.
async fn read(mut messages: Subscriber, grant: Grant, mut stopped: oneshot::Receiver<()>) {
    loop {
        let message = tokio::select! {
            _ = &mut stopped => return,
            () = grant.ended() => return,
            message = messages.next() => message,
        };
        let Some(message) = message else { return };
        let (partition, token) = (grant.partition(), grant.token().get());
        let text = String::from_utf8_lossy(&message.payload);
        println!("{partition} under token {token}: {text}");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next();
    let url: StoreUrl = address
        .as_deref()
        .unwrap_or("nats://localhost:4222")
        .parse()?;
    let reach = StoreSettings {
        cluster: "readings".to_owned(),
        ..StoreSettings::default()
    };
    let hooks = Readings {
        client: nats::connect(&url, &reach).await?,
        running: Mutex::default(),
    };
    let manager = Manager::builder((url, reach), StaticSource::shards(["sensor"], 16)?)
        .settings(Settings {
            instance: arguments.next(),
            ..Settings::fast()
        })
        .hooks(hooks)
        .start()
        .await?;
    tokio::signal::ctrl_c().await?;
    manager.stop(Shutdown::Leave).await?;
    Ok(())
}
