//! A transport of your own: a subscription of core NATS for each owned partition.
//!
//! Nothing is stored: what comes while nobody owns a partition is gone, which
//! may be just right for readings of sensors. Without a name, two workers read
//! what is published, one leaves, and the program ends. With a name it is one
//! worker, until Ctrl-C.
//!
//! ```console
//! $ cargo run --release -p divvy --features nats --example manual_nats -- nats://localhost:4222
//! $ cargo run --release -p divvy --features nats --example manual_nats -- nats://localhost:4222 a
//! $ nats publish readings.sensor.3 21.5
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Client, Subscriber};
use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
use divvy::store::{StoreSettings, StoreUrl, nats};
use futures_util::StreamExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SENSORS: u32 = 16;
const PREFIX: &str = "readings";
const TEMPLATE: &str = "{prefix}.{keys}";

/// What tells a partition's reader to end, and its end.
type Running = (oneshot::Sender<()>, JoinHandle<()>);

struct Readings {
    name: String,
    client: Client,
    /// What runs, by partition: how to ask it to end, and how to wait for that.
    running: Mutex<BTreeMap<String, Running>>,
    seen: Arc<AtomicU32>,
}

impl Readings {
    fn new(name: &str, client: &Client) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            client: client.clone(),
            running: Mutex::default(),
            seen: Arc::default(),
        })
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owned(&self) -> u32 {
        u32::try_from(self.running().len()).unwrap_or(u32::MAX)
    }

    fn seen(&self) -> u32 {
        self.seen.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Hooks for Readings {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        // An error here is reported, and the partition is offered again.
        let subject = partition.subject_from(TEMPLATE, PREFIX)?;
        let mut messages = self.client.subscribe(subject).await?;
        let (stop, stopped) = oneshot::channel();
        let (name, seen) = (self.name.clone(), Arc::clone(&self.seen));
        let task = tokio::spawn(async move {
            let mut stopped = stopped;
            while let Some(text) = next(&mut messages, &grant, &mut stopped).await {
                let (partition, token) = (grant.partition(), grant.token().get());
                println!("{name} reads {partition} under token {token}: {text}");
                seen.fetch_add(1, Ordering::Relaxed);
            }
        });
        self.running().insert(partition.to_string(), (stop, task));
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        let found = self.running().remove(partition.as_str());
        if let Some((stop, task)) = found {
            // Only when this returns does the next owner begin.
            let _ended = stop.send(());
            task.await?;
        }
        Ok(())
    }
}

/// The next reading; nothing when it is asked to end or the grant is over.
async fn next(
    messages: &mut Subscriber,
    grant: &Grant,
    stopped: &mut oneshot::Receiver<()>,
) -> Option<String> {
    let message = tokio::select! {
        _ = stopped => return None,
        () = grant.ended() => return None,
        message = messages.next() => message?,
    };
    Some(String::from_utf8_lossy(&message.payload).into_owned())
}

fn reach() -> StoreSettings {
    StoreSettings {
        cluster: "readings".to_owned(),
        ..StoreSettings::default()
    }
}

/// Starts a worker.
async fn work(url: &StoreUrl, hooks: &Arc<Readings>) -> Result<Manager, Box<dyn Error>> {
    let source = StaticSource::shards(["sensor"], SENSORS)?;
    let manager = Manager::builder((url.clone(), reach()), source)
        .settings(Settings {
            instance: Some(hooks.name.clone()),
            ..Settings::fast()
        })
        .hooks(Arc::clone(hooks))
        .start();
    Ok(manager.await?)
}

/// Two workers, of which one leaves, and readings meanwhile.
async fn demonstrate(url: &StoreUrl) -> Result<(), Box<dyn Error>> {
    // One connection for all: what is published on it comes after what was
    // subscribed to on it, so that no reading is missed here.
    let client = nats::connect(url, &reach()).await?;
    let (a, b) = (Readings::new("a", &client), Readings::new("b", &client));
    let (first, second) = (work(url, &a).await?, work(url, &b).await?);
    until(|| a.owned() > 0 && b.owned() > 0 && a.owned() + b.owned() == SENSORS).await;
    publish(&client, "21.5").await?;
    until(|| a.seen() + b.seen() == SENSORS).await;
    println!("\na leaves");
    first.stop(Shutdown::Leave).await?;
    until(|| b.owned() == SENSORS).await;
    publish(&client, "22.0").await?;
    until(|| a.seen() + b.seen() == 2 * SENSORS).await;
    second.stop(Shutdown::Leave).await?;
    println!("\n{} readings were read, each once", a.seen() + b.seen());
    Ok(())
}

/// A reading of every sensor.
async fn publish(client: &Client, reading: &'static str) -> Result<(), Box<dyn Error>> {
    for sensor in 0..SENSORS {
        let subject = Partition::shard("sensor", sensor)?.subject_from(TEMPLATE, PREFIX)?;
        client.publish(subject, reading.into()).await?;
    }
    Ok(())
}

async fn until(holds: impl Fn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    while !holds() {
        looks.tick().await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next();
    let address = address.as_deref().unwrap_or("nats://localhost:4222");
    let url: StoreUrl = address.parse()?;
    let Some(name) = arguments.next() else {
        return demonstrate(&url).await;
    };
    let client = nats::connect(&url, &reach()).await?;
    let manager = work(&url, &Readings::new(&name, &client)).await?;
    tokio::signal::ctrl_c().await?;
    Ok(manager.stop(Shutdown::Leave).await?)
}
