//! divvy divides partitions of work among workers: fairly, with as few moves
//! as possible, and so that each has one owner.
//!
//! This is the crate to depend on. It offers placement: keys, partitions,
//! workers and the strategies that bring them together, all of it pure and the
//! same on every platform. See [`Strategy`] for the one trait, [`Assignment`]
//! for its result, and [`KeySpace`] for the way from an application's keys to
//! partitions. It offers a [`manager`] that makes a process one of several
//! workers, each with its own partitions, a [`controller`] that does the same
//! by one lease for each partition and without a leader, and stores for both
//! to coordinate through: see [`store`].
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
//! # Features
//!
//! - `parallel` adds `Rendezvous::parallel()`: the same placement, computed on
//!   all cores.
//! - `file` adds the store in a file, for all processes of one machine.
//! - `nats` adds the store in a NATS JetStream bucket, and `subscriptions`: the
//!   messages of owned partitions.
//! - `redis` adds the stores in a Redis or Valkey server.
//! - `conformance` adds the suite that every store must pass, for stores of
//!   one's own.

#![forbid(unsafe_code)]

pub use divvy_core::*;

pub mod controller;
pub mod doctor;
pub mod listing;
pub mod manager;
pub mod observer;
pub mod store;
#[cfg(feature = "nats")]
pub mod subscriptions;

/// The README's program is compiled and run as a test of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
