//! Workers that share partitions through NATS: two in this process, or one in each terminal.
//!
//! Without names, two workers share 16 partitions, one leaves, and the program
//! ends. With a name it is one worker, until Ctrl-C: start it in two terminals,
//! and end one.
//!
//! ```console
//! $ cargo run --release -p divvy --features nats --example leader_nats -- nats://localhost:4222
//! $ cargo run --release -p divvy --features nats --example leader_nats -- nats://localhost:4222 a
//! $ cargo run --release -p divvy --features nats --example leader_nats -- nats://localhost:4222 b
//! ```

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{
    Grant, HookError, Hooks, Manager, ManagerError, Settings, Shutdown, StaticSource,
};
use divvy::store::{StoreSettings, StoreUrl};

const PARTITIONS: u32 = 16;

struct Worker {
    name: String,
}

#[async_trait]
impl Hooks for Worker {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        let token = grant.token().get();
        println!("{} starts {partition} with token {token}", self.name);
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        println!("{} has stopped {partition}", self.name);
        Ok(())
    }

    async fn leadership_changed(&self, is_leader: bool) {
        let what = if is_leader { "leads" } else { "leads no more" };
        println!("{} {what}", self.name);
    }

    async fn error(&self, error: &ManagerError) {
        eprintln!("{}: {error}", self.name);
    }
}

/// Starts a worker.
async fn work(url: &StoreUrl, name: &str) -> Result<Manager, Box<dyn Error>> {
    let settings = Settings {
        // Who comes back under its name gets its id and its partitions again.
        instance: Some(name.to_owned()),
        ..Settings::fast()
    };
    let store = StoreSettings {
        cluster: "example".to_owned(),
        ..StoreSettings::default()
    };
    let worker = Worker {
        name: name.to_owned(),
    };
    // Given by its address, the store works on the manager's own thread: what
    // blocks this program does not cost it its lease.
    let source = StaticSource::shards(["orders"], PARTITIONS)?;
    let manager = Manager::builder((url.clone(), store), source)
        .settings(settings)
        .hooks(worker)
        .start()
        .await?;
    let id = manager.worker_id();
    println!("{name} is {}", id.as_deref().unwrap_or("nobody"));
    Ok(manager)
}

/// Two workers, of which one leaves.
async fn demonstrate(url: &StoreUrl) -> Result<(), Box<dyn Error>> {
    let (first, second) = (work(url, "a").await?, work(url, "b").await?);
    shared(&[&first, &second]).await;
    println!("\na leaves");
    first.stop(Shutdown::Leave).await?;
    shared(&[&second]).await;
    println!("\nb leaves");
    Ok(second.stop(Shutdown::Leave).await?)
}

/// Waits until everybody has something, and every partition has somebody.
async fn shared(workers: &[&Manager]) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    loop {
        looks.tick().await;
        let assignments = workers.iter().map(|one| one.current_assignment());
        let counts: Vec<usize> = assignments.map(|one| one.partitions.len()).collect();
        if counts.iter().sum::<usize>() == PARTITIONS as usize && !counts.contains(&0) {
            return;
        }
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
    let manager = work(&url, &name).await?;
    tokio::signal::ctrl_c().await?;
    Ok(manager.stop(Shutdown::Leave).await?)
}
