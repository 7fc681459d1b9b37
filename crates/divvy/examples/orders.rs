//! Orders: a publisher, workers that share its partitions, and what to look at.
//!
//! Customers' orders are spread over 16 partitions by the customer's name, so
//! that each customer's orders come in order. Workers own partitions, hand them
//! on when they leave or crash, and every order is handled once.
//!
//! ```console
//! $ cargo run --release -p divvy --features nats --example orders
//! $ cargo run --release -p divvy --features nats --example orders -- nats://localhost:4222 publish
//! $ cargo run --release -p divvy --features nats --example orders -- nats://localhost:4222 work a
//! ```
//!
//! The first does all of it in one process, with two workers of which one
//! leaves, and ends by itself. The others are one process each: start as many
//! workers as you like, and end some with Ctrl-C or `kill -9`.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use divvy::manager::{Grant, Manager, Settings, Shutdown, StaticSource};
use divvy::store::{StoreSettings, StoreUrl, nats};
use divvy::subscriptions::{
    Failure, Handler, Message, Retention, SubscriptionSettings, Subscriptions,
};
use divvy::{KeySpace, Partition, Partitions};

const PARTITIONS: u32 = 16;
const CUSTOMERS: u32 = 50;

/// What orders do to: here a table in memory. A real one is a database, which
/// keeps the token and the sequence beside the rows, and compares both in the
/// transaction that writes.
#[derive(Default)]
struct Books {
    /// By partition: the highest token, the last sequence, and how many.
    rows: Mutex<BTreeMap<String, (i64, u64, u32)>>,
}

impl Books {
    /// Enters an order, unless it is there already. Nobody may who was owner
    /// before.
    fn enter(&self, partition: &str, token: i64, sequence: u64) -> Result<(), Failure> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let (highest, last, count) = rows.entry(partition.to_owned()).or_default();
        if token < *highest {
            return Err(Failure::retry("somebody else is owner now"));
        }
        *highest = token;
        if sequence > *last {
            (*last, *count) = (sequence, *count + 1);
        }
        Ok(())
    }

    fn count(&self) -> u32 {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.values().map(|(_, _, count)| count).sum()
    }
}

struct Worker {
    name: String,
    books: Arc<Books>,
}

#[async_trait]
impl Handler for Worker {
    async fn handle(
        &self,
        message: &Message,
        partition: &Partition,
        grant: &Grant,
    ) -> Result<(), Failure> {
        let order = String::from_utf8_lossy(message.payload());
        if order.is_empty() {
            // Never worth another try: it goes to the stream orders-dead.
            return Err(Failure::poison("an order without a customer"));
        }
        let (token, sequence) = (grant.token().get(), message.sequence());
        self.books.enter(partition.as_str(), token, sequence)?;
        println!("{} {partition} {order}", self.name);
        Ok(())
    }
}

fn settings() -> SubscriptionSettings {
    SubscriptionSettings {
        // Made if it is missing. An order is forgotten when it was handled.
        retention: Some(Retention::Workqueue),
        template: "{prefix}.{keys}".to_owned(),
        // About the lease: what a crashed worker had begun waits so long.
        ack_wait: Duration::from_secs(1),
        drain_timeout: Duration::from_secs(1),
        ..SubscriptionSettings::new("orders", "orders")
    }
}

fn reach() -> StoreSettings {
    StoreSettings {
        cluster: "orders".to_owned(),
        ..StoreSettings::default()
    }
}

/// Starts a worker: subscriptions follow a manager as its hooks.
async fn work(
    url: &StoreUrl,
    name: &str,
    books: &Arc<Books>,
) -> Result<(Manager, Subscriptions), Box<dyn Error>> {
    let worker = Worker {
        name: name.to_owned(),
        books: Arc::clone(books),
    };
    let subscriptions = Subscriptions::open(url, &reach(), settings(), worker).await?;
    let manager = Manager::builder(
        (url.clone(), reach()),
        StaticSource::shards(["shop"], PARTITIONS)?,
    )
    .settings(Settings {
        instance: Some(name.to_owned()),
        ..Settings::fast()
    })
    .hooks(subscriptions.clone())
    .start()
    .await?;
    Ok((manager, subscriptions))
}

/// Publishes so many orders, each to the partition of its customer.
async fn publish(url: &StoreUrl, orders: u32, pause: Duration) -> Result<(), Box<dyn Error>> {
    let client = nats::connect(url, &reach()).await?;
    // The number of partitions is fixed: other numbers are other subjects.
    let space = KeySpace::new(Default::default(), i64::from(PARTITIONS))?;
    for number in 0..orders {
        let customer = format!("customer-{}", number % CUSTOMERS);
        let subject = settings().subject(&space.shard_of("shop", &customer)?)?;
        // The answer says that the stream has stored it.
        let order = format!("{customer} order {number}");
        let answer = client.request(subject, order.into()).await?;
        if String::from_utf8_lossy(&answer.payload).contains("\"error\"") {
            return Err(String::from_utf8_lossy(&answer.payload).into());
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// What to look at: how each partition does. `render_metrics` gives the same to
/// Prometheus.
fn show(name: &str, subscriptions: &Subscriptions) {
    let health = subscriptions.health();
    let waiting: u64 = health.iter().map(|health| health.lag).sum();
    println!(
        "{name} owns {} partitions, {waiting} orders wait",
        health.len()
    );
    for partition in health.iter().filter(|health| health.last_error.is_some()) {
        println!("  {}: {:?}", partition.partition, partition.last_error);
    }
}

/// All of it in one process.
async fn demonstrate(url: &StoreUrl) -> Result<(), Box<dyn Error>> {
    const ORDERS: u32 = 600;
    let books = Arc::new(Books::default());
    let (first, at_first) = work(url, "a", &books).await?;
    let (second, at_second) = work(url, "b", &books).await?;
    let publishing = publish(url, ORDERS, Duration::from_millis(5));
    let leaving = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        show("a", &at_first);
        show("b", &at_second);
        println!("a leaves");
        first.stop(Shutdown::Leave).await
    };
    let (published, left) = tokio::join!(publishing, leaving);
    published?;
    left?;
    while books.count() < ORDERS {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    show("b", &at_second);
    second.stop(Shutdown::Leave).await?;
    println!(
        "{ORDERS} orders were published, {} are in the books",
        books.count()
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let url = arguments.first().unwrap_or(&"nats://localhost:4222");
    let url: StoreUrl = url.parse()?;
    match arguments.get(1..).unwrap_or_default() {
        [] => demonstrate(&url).await,
        ["publish"] => {
            // Also makes the stream and, for every partition, its consumer.
            let nobody = Worker {
                name: String::new(),
                books: Arc::default(),
            };
            let opened = Subscriptions::open(&url, &reach(), settings(), nobody).await?;
            opened
                .ensure(&Partitions::shards([("shop", PARTITIONS)])?)
                .await?;
            let publishing = publish(&url, u32::MAX, Duration::from_millis(20));
            tokio::select! {
                published = publishing => published,
                ended = tokio::signal::ctrl_c() => Ok(ended?),
            }
        }
        ["work", name] => {
            let (manager, subscriptions) = work(&url, name, &Arc::default()).await?;
            tokio::signal::ctrl_c().await?;
            show(name, &subscriptions);
            Ok(manager.stop(Shutdown::Leave).await?)
        }
        _ => Err("orders [URL [publish | work NAME]]".into()),
    }
}
