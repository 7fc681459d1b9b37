//! Real servers, broken networks, a real browser, and processes of divvy, for tests.
//!
//! A test starts the servers it needs, each on a port of its own, bound to the loopback address and
//! with a temporary directory, and may pause, kill and restart them. None outlives the value that
//! stands for it, nor the test's process, however that ends. `scripts/servers` installs them; one
//! that is missing is a failure that says so.
//!
//! What can't be had in a test is a panic here, with the server's log in its message: there is
//! nothing that a test could do about it.
//!
//! ```no_run
//! # async fn example() {
//! use divvy_testbed::{NatsOptions, NatsServer, NatsVersion, Proxy};
//!
//! let mut server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
//! let proxy = Proxy::start(server.address()).await;
//! let client_connects_to = format!("nats://{}", proxy.address());
//! proxy.hold_replies(); // What the client writes now is applied, but it is not told.
//! server.kill();
//! server.start_again().await; // On the same port, with the same data.
//! # }
//! ```

mod alive;
mod announce;
mod at_once;
mod browser;
mod certificates;
mod cluster_kind;
mod connection;
mod devtools;
mod gate;
mod heard;
mod nats;
mod nats_cluster;
mod nats_operator;
mod nats_options;
mod nkey;
mod playground_process;
mod port;
mod postgres;
mod probe;
mod process;
mod program;
mod proxy;
mod redis;
mod redis_options;
mod server;
mod spawner;
mod store_server;
mod switch;
mod tab;
mod until;

pub use alive::{ProcessId, is_alive};
pub use announce::announce;
pub use at_once::at_once;
pub use browser::Browser;
pub use certificates::{Certificates, Identity};
pub use cluster_kind::ClusterKind;
pub use gate::Gate;
pub use heard::Heard;
pub use nats::NatsServer;
pub use nats_cluster::NatsCluster;
pub use nats_operator::NatsOperator;
pub use nats_options::NatsOptions;
pub use nkey::Nkey;
pub use playground_process::PlaygroundProcess;
pub use postgres::PostgresServer;
pub use program::{NatsVersion, RedisFlavour};
pub use proxy::Proxy;
pub use redis::RedisServer;
pub use redis_options::RedisOptions;
pub use server::Server;
pub use store_server::StoreServer;
pub use switch::Switch;
pub use tab::{Tab, Window};
pub use until::{until, until_some};
