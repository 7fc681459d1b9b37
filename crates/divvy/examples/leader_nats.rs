//! One worker of several processes that share partitions through NATS. Start it
//! in two terminals, and end one with Ctrl-C.
//!
//! ```console
//! $ cargo run --release -p divvy --features nats --example leader_nats -- nats://localhost:4222 a
//! $ cargo run --release -p divvy --features nats --example leader_nats -- nats://localhost:4222 b
//! ```

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{
    Grant, HookError, Hooks, Manager, ManagerError, Settings, Shutdown, StaticSource,
};
use divvy::store::{StoreSettings, StoreUrl};

struct Printing;

#[async_trait]
impl Hooks for Printing {
    async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
        println!("start {partition} with token {}", grant.token().get());
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        println!("stopped {partition}");
        Ok(())
    }

    async fn leadership_changed(&self, is_leader: bool) {
        println!("{}", if is_leader { "leads" } else { "leads no more" });
    }

    async fn error(&self, error: &ManagerError) {
        eprintln!("{error}");
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
    let settings = Settings {
        // Who comes back under its name gets its id and its partitions again.
        instance: arguments.next(),
        ..Settings::fast()
    };
    let store = StoreSettings {
        cluster: "example".to_owned(),
        ..StoreSettings::default()
    };
    // Given by its address, the store works on the manager's own thread: what
    // blocks this program does not cost it its lease.
    let manager = Manager::builder((url, store), StaticSource::shards(["orders"], 16)?)
        .settings(settings)
        .hooks(Printing)
        .start()
        .await?;
    println!("is {}", manager.worker_id().as_deref().unwrap_or("nobody"));
    tokio::signal::ctrl_c().await?;
    manager.stop(Shutdown::Leave).await?;
    Ok(())
}
