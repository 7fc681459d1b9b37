//! A transport of your own: a Redis stream for each partition, read through a
//! consumer group. The group keeps the position and what was not acknowledged,
//! so the next owner goes on where the last one ended.
//!
//! ```console
//! $ cargo run --release -p divvy --features redis --example manual_redis -- redis://localhost:6379 a
//! $ redis-cli XADD jobs:mail:3 '*' text hello
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
use divvy::store::{StoreSettings, StoreUrl};
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const GROUP: &str = "workers";
/// The same for all workers: what one left unacknowledged is its successor's.
const CONSUMER: &str = "owner";
/// Shorter than the client waits for an answer.
const BLOCK_MS: u32 = 200;

/// Entries as Redis gives them: by stream, each an id with fields and values.
type Entries = Option<Vec<(String, Vec<(String, Vec<String>)>)>>;

/// What tells a partition's reader to end, and its end.
type Running = (watch::Sender<bool>, JoinHandle<()>);

struct Jobs {
    client: redis::Client,
    running: Mutex<BTreeMap<String, Running>>,
}

#[async_trait]
impl Hooks for Jobs {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        let mut connection = self.client.get_multiplexed_async_connection().await?;
        let stream = format!("jobs:{partition}");
        let made: redis::RedisResult<()> = redis::cmd("XGROUP")
            .arg("CREATE")
            .arg(&stream)
            .arg(GROUP)
            .arg("0")
            .arg("MKSTREAM")
            .query_async(&mut connection)
            .await;
        match made {
            Err(error) if error.code() != Some("BUSYGROUP") => return Err(error.into()),
            // Made, or made by an owner before.
            _ => {}
        }
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            if let Err(error) = work(connection, &stream, &grant, stopped).await {
                eprintln!("{stream}: {error}");
            }
        });
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
            // The entry that is being worked on is finished first.
            stop.send_replace(true);
            task.await?;
        }
        Ok(())
    }
}

/// Works on entries one after another, until asked to end or the grant is over.
async fn work(
    mut connection: MultiplexedConnection,
    stream: &str,
    grant: &Grant,
    stopped: watch::Receiver<bool>,
) -> redis::RedisResult<()> {
    // First what was given out and not acknowledged, then what is new.
    let mut from = "0";
    while !*stopped.borrow() && grant.is_current() {
        let entries: Entries = redis::cmd("XREADGROUP")
            .arg("GROUP")
            .arg(GROUP)
            .arg(CONSUMER)
            .arg("COUNT")
            .arg(1)
            .arg("BLOCK")
            .arg(BLOCK_MS)
            .arg("STREAMS")
            .arg(stream)
            .arg(from)
            .query_async(&mut connection)
            .await?;
        let entries = entries
            .unwrap_or_default()
            .into_iter()
            .flat_map(|(_, entries)| entries);
        let entries: Vec<_> = entries.collect();
        if entries.is_empty() {
            from = ">";
        }
        for (id, fields) in entries {
            println!("{stream} under token {}: {fields:?}", grant.token().get());
            let _count: u32 = redis::cmd("XACK")
                .arg(stream)
                .arg(GROUP)
                .arg(&id)
                .query_async(&mut connection)
                .await?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next();
    let address = address.as_deref().unwrap_or("redis://localhost:6379");
    let url: StoreUrl = address.parse()?;
    let hooks = Jobs {
        client: redis::Client::open(address)?,
        running: Mutex::default(),
    };
    let reach = StoreSettings {
        cluster: "jobs".to_owned(),
        ..StoreSettings::default()
    };
    let manager = Manager::builder((url, reach), StaticSource::shards(["mail"], 8)?)
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
