//! A transport of your own: a Redis stream for each partition, read through a consumer group.
//!
//! The group keeps the position and what was not acknowledged, so the next
//! owner goes on where the last one ended. Without a name, two workers do the
//! jobs of eight streams, one leaves, and the program ends. With a name it is
//! one worker, until Ctrl-C.
//!
//! ```console
//! $ cargo run --release -p divvy --features redis --example manual_redis -- redis://localhost:6379
//! $ cargo run --release -p divvy --features redis --example manual_redis -- redis://localhost:6379 a
//! $ redis-cli XADD jobs:mail:3 '*' text hello
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
use divvy::store::{StoreSettings, StoreUrl};
use redis::aio::MultiplexedConnection;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const STREAMS: u32 = 8;
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
    name: String,
    client: redis::Client,
    running: Mutex<BTreeMap<String, Running>>,
    done: Arc<AtomicU32>,
}

impl Jobs {
    fn new(name: &str, client: &redis::Client, done: &Arc<AtomicU32>) -> Self {
        Self {
            name: name.to_owned(),
            client: client.clone(),
            running: Mutex::default(),
            done: Arc::clone(done),
        }
    }
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
        let (name, done) = (self.name.clone(), Arc::clone(&self.done));
        let task = tokio::spawn(async move {
            let (stream, token) = (stream.as_str(), grant.token().get());
            let work = |fields: &[String]| {
                let job = fields.join(" ");
                println!("{name} does {stream} under token {token}: {job}");
                done.fetch_add(1, Ordering::Relaxed);
            };
            if let Err(error) = follow(connection, stream, &grant, stopped, work).await {
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
async fn follow(
    mut connection: MultiplexedConnection,
    stream: &str,
    grant: &Grant,
    stopped: watch::Receiver<bool>,
    work: impl Fn(&[String]),
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
            work(&fields);
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

/// Starts a worker.
async fn start(address: &str, jobs: Jobs) -> Result<Manager, Box<dyn Error>> {
    let url: StoreUrl = address.parse()?;
    let reach = StoreSettings {
        cluster: "jobs".to_owned(),
        ..StoreSettings::default()
    };
    let manager = Manager::builder((url, reach), StaticSource::shards(["mail"], STREAMS)?)
        .settings(Settings {
            instance: Some(jobs.name.clone()),
            ..Settings::fast()
        })
        .hooks(jobs)
        .start();
    Ok(manager.await?)
}

/// Two workers, of which one leaves, and jobs meanwhile.
async fn demonstrate(address: &str) -> Result<(), Box<dyn Error>> {
    let client = redis::Client::open(address)?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let done = Arc::new(AtomicU32::new(0));
    let first = start(address, Jobs::new("a", &client, &done)).await?;
    let second = start(address, Jobs::new("b", &client, &done)).await?;
    let share = |worker: &Manager| worker.current_assignment().partitions.len();
    until(|| share(&first) > 0 && share(&second) > 0).await;
    add(&mut connection, "before").await?;
    until(|| done.load(Ordering::Relaxed) >= STREAMS).await;
    println!("\na leaves, and what comes meanwhile waits for the next owner");
    first.stop(Shutdown::Leave).await?;
    add(&mut connection, "after").await?;
    until(|| done.load(Ordering::Relaxed) >= 2 * STREAMS).await;
    second.stop(Shutdown::Leave).await?;
    println!("\n{} jobs were done", done.load(Ordering::Relaxed));
    Ok(())
}

/// A job in every stream.
async fn add(connection: &mut MultiplexedConnection, text: &str) -> redis::RedisResult<()> {
    for number in 0..STREAMS {
        let _id: String = redis::cmd("XADD")
            .arg(format!("jobs:mail:{number}"))
            .arg("*")
            .arg("text")
            .arg(text)
            .query_async(connection)
            .await?;
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
    let address = address.as_deref().unwrap_or("redis://localhost:6379");
    let Some(name) = arguments.next() else {
        return demonstrate(address).await;
    };
    let client = redis::Client::open(address)?;
    let manager = start(address, Jobs::new(&name, &client, &Arc::default())).await?;
    tokio::signal::ctrl_c().await?;
    Ok(manager.stop(Shutdown::Leave).await?)
}
