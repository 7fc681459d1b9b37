//! divvy divides partitions of work among workers: fairly, with as few moves
//! as possible, and so that each has one owner. This is the crate to depend on.
//!
//! # Start here: a worker of a cluster
//!
//! A [`Manager`](manager::Manager) makes this process one of several workers.
//! It says which partitions to start and which to stop, through
//! [`Hooks`](manager::Hooks):
//!
//! ```
//! use async_trait::async_trait;
//! use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
//! use divvy::store::MemoryKeyValue;
//! use divvy::{Balanced, Partition};
//!
//! struct Worker;
//!
//! #[async_trait]
//! impl Hooks for Worker {
//!     async fn assigned(&self, partition: &Partition, grant: Grant) -> Result<(), HookError> {
//!         // Start to work, and hand the token to whatever is written to.
//!         println!("{partition} is ours, with token {}", grant.token());
//!         Ok(())
//!     }
//!
//!     async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
//!         // Stop. Only when this has returned does somebody else start.
//!         println!("{partition} is stopped");
//!         Ok(())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let source = StaticSource::shards(["orders"], 8)?;
//! let manager = Manager::builder(MemoryKeyValue::new(), source)
//!     .settings(Settings::fast())
//!     .strategy(Balanced::new())
//!     .hooks(Worker)
//!     .start()
//!     .await?;
//! let mut following = manager.watch_assignment();
//! while following.current().partitions.len() < 8 {
//!     following.changed().await;
//! }
//! manager.stop(Shutdown::Leave).await?;
//! # Ok::<(), divvy::manager::ManagerError>(())
//! # }).unwrap();
//! ```
//!
//! The store in memory joins managers of one process. Give an address instead,
//! such as `(url, StoreSettings::default())` with a [`StoreUrl`](store::StoreUrl)
//! of `file:`, `nats://` or `redis://`, and the same code joins processes.
//!
//! # Where to go next
//!
//! | you want | read |
//! | --- | --- |
//! | leader mode: stable ids, planned moves, any strategy, on every store | [`manager`] |
//! | lease mode: no leader, one lease for each partition, on memory, file and Redis | [`controller`], and [`lease`] for its words |
//! | to know whether you may still act, and a fencing token | [`Grant`](manager::Grant) |
//! | partitions from a file, a command or code of your own | [`PartitionSource`](manager::PartitionSource) |
//! | a store, its address and its settings, or one of your own | [`store`] |
//! | placement alone, without a cluster | [`Strategy`], and below |
//! | another way to place, and what each promises | [the table of strategies](divvy_core#which-strategy) |
//! | messages of owned partitions from a NATS stream | `subscriptions`, with the feature `nats` |
//! | to look at a live cluster, and to steer it: cordon, drain, pin | [`observer`] |
//! | to know whether a store will do | [`doctor`] |
//! | lists of partitions in CSV, JSON and YAML | [`listing`] |
//!
//! # Placement alone
//!
//! Keys, partitions, workers and the strategies that bring them together are
//! pure: the same input gives the same owners on every platform.
//!
//! ```
//! use divvy::{KeySpace, Partitions, Rendezvous, Strategy, Workers};
//!
//! let workers = Workers::of(["alpha", "beta", "gamma"])?;
//! let partitions = Partitions::shards([("orders", 100)])?;
//! let assignment = Rendezvous::new().assign(&workers, &partitions, None)?;
//!
//! let partition = KeySpace::default().shard_of("orders", "customer-4711")?;
//! let owner = assignment.owner_of(partition.as_str()).unwrap();
//! assert_eq!((partition.as_str(), owner.id()), ("orders:60", "alpha"));
//! # Ok::<(), divvy::Error>(())
//! ```
//!
//! # What is promised
//!
//! - Placement never changes by accident: hashes and scores are pinned, and
//!   another release gives the same owners.
//! - A partition goes to its next owner only after the last one has stopped, or
//!   its lease has run out. That no two workers have a current
//!   [`Grant`](manager::Grant) for it rests on the store: in memory, in a file, and
//!   on servers that keep what they acknowledged it holds; where it does not, such
//!   as Redis with failover, `docs/protocol.md` says so. Who sets `store_outage:
//!   overlap` prefers two owners to none while the store is away.
//!
//! And what is not: a process that stalls between checking its grant and acting
//! may act too late. Nothing in the process can prevent that; hand
//! [`Grant::token`](manager::Grant::token) to the resource, and let it refuse
//! lower ones. Messages come at least once, not exactly once.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `parallel` | `Rendezvous::parallel()`: the same placement, computed on all cores |
//! | `file` | the store `file:PATH`, for all processes of one machine |
//! | `nats` | the store `nats://HOST` in a JetStream bucket, and `subscriptions` |
//! | `redis` | the stores `redis://HOST`, on Redis or Valkey |
//! | `conformance` | `store::conformance`: the suite that every store passes, for stores of one's own |
//!
//! # Types of other crates
//!
//! Few are in signatures: `async_trait` in front of the traits that an
//! application implements, `tokio::sync::mpsc::Sender` where it listens to events,
//! `tokio::sync::watch::Receiver` where a store tells whether it is reached, serde's
//! traits on settings and documents, and, with `nats`, the client that
//! `store::nats::connect` gives. A new major version of one of these is a new
//! breaking version of divvy.

#![forbid(unsafe_code)]

pub use divvy_core::{
    ASSIGNMENT_FORMAT, Assignment, AssignmentDocument, Balance, Balanced, CONTROL_BYTES_MAX,
    CRUSTER_WEIGHT_MAX, Cause, Certificate, Change, Considered, ConsistentHash, Control,
    DJB2_JS_PARTITIONS_MAX, DJB2_JS_PARTITIONS_MIN, EXTREME_THRESHOLD_DEFAULT,
    EXTREME_THRESHOLD_MAX, EXTREME_THRESHOLD_MIN, Error, Explanation, FilteredRendezvous, Health,
    Invalid, KEY_PARTITIONS_DEFAULT, KeyPlace, KeyScheme, KeySpace, LiveRendezvous, LoadsAt,
    Moment, Move, MoveEntry, Moves, OVERLOAD_THRESHOLD_DEFAULT, OVERLOAD_THRESHOLD_MAX,
    OVERLOAD_THRESHOLD_MIN, PARTITION_WEIGHT_DEFAULT, PARTITIONS_BYTES_MAX, PARTITIONS_MAX,
    Partition, Partitions, PlanDocument, Proposal, RING_POINTS_MAX, Ranked, Reason, Rejected,
    Rendezvous, Ring, RoundRobin, SEGMENT_BYTES_MAX, SEGMENTS_MAX, Scheme, SchemeName, Strategy,
    StrategyName, StrategyOptions, StrategySettings, VIRTUAL_NODES_DEFAULT, VIRTUAL_NODES_MAX,
    Veto, WORKER_NAME_BYTES_MAX, WORKER_WEIGHT_DEFAULT, WORKER_WEIGHT_MAX, WORKER_WEIGHT_MIN,
    WORKERS_MAX, WeightedConsistentHash, Worker, WorkerLoad, Workers, Zoned, hash,
};

mod alarm;
pub mod controller;
pub mod doctor;
mod hook_limiter;
pub mod lease;
pub mod listing;
pub mod manager;
pub mod observer;
mod own_thread;
pub mod store;
#[cfg(feature = "nats")]
pub mod subscriptions;

/// The README's program is compiled and run as a test of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are the programs of this guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migrating.md")]
struct Migrating;
