//! Three workers share twelve partitions; one leaves, and the others go on with what it had.
//!
//! ```console
//! $ cargo run --release --example quickstart
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use divvy::manager::{
    Grant, HookError, Hooks, Manager, ManagerError, Settings, Shutdown, StaticSource,
};
use divvy::store::MemoryKeyValue;
use divvy::{Balanced, Partition};

/// What a worker does with its partitions: here it only says so.
struct Worker {
    name: &'static str,
}

#[async_trait]
impl Hooks for Worker {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        // A real one starts to work here, and hands the token to whatever it
        // writes to.
        let token = grant.token().get();
        println!("{} starts {partition} with token {token}", self.name);
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        // Only when this has returned does the partition go to somebody else.
        println!("{} has stopped {partition}", self.name);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), ManagerError> {
    // In this process; `nats://`, `redis://` and `file:` join processes.
    let store = MemoryKeyValue::new();
    let mut workers = Vec::new();
    for name in ["alpha", "beta", "gamma"] {
        let settings = Settings {
            instance: Some(name.to_owned()),
            ..Settings::fast()
        };
        let source = StaticSource::shards(["orders"], 12)?;
        let manager = Manager::builder(store.clone(), source)
            .settings(settings)
            .strategy(Balanced::new())
            .hooks(Worker { name })
            .start();
        workers.push((name, manager.await?));
    }
    shared(&workers, 4).await;
    show(&workers);

    let (name, leaving) = workers.remove(0);
    println!("\n{name} leaves");
    leaving.stop(Shutdown::Leave).await?;
    shared(&workers, 6).await;
    show(&workers);

    println!("\nthe others leave");
    for (_, manager) in workers {
        manager.stop(Shutdown::Leave).await?;
    }
    Ok(())
}

/// Waits until each worker owns so many partitions.
async fn shared(workers: &[(&str, Manager)], share: usize) {
    for (_, manager) in workers {
        let mut following = manager.watch_assignment();
        while following.current().partitions.len() != share {
            following.changed().await;
        }
    }
}

/// Prints who owns what.
fn show(workers: &[(&str, Manager)]) {
    println!();
    for (name, manager) in workers {
        let id = manager.worker_id().unwrap_or_else(|| Arc::from("nobody"));
        let assignment = manager.current_assignment();
        let owned = assignment.partitions.iter();
        let owned: Vec<_> = owned.map(|owned| owned.partition.to_string()).collect();
        let leads = if manager.is_leader() { ", leads" } else { "" };
        println!("{name} ({id}{leads}) owns {}", owned.join(" "));
    }
}
