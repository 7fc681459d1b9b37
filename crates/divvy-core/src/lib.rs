//! The pure part of divvy: it divides partitions of work among workers.
//!
//! Nothing here reads a clock, opens a socket or draws a random number: what
//! it needs is handed in, and the same input gives the same output on every
//! platform.
//!
//! Services depend on the crate `divvy`, which re-exports placement from here and
//! adds stores, the manager and the controller. This one is for who wants
//! placement and few dependencies, or drives the machines of coordination.
//!
//! The way of the data, and the type to read for each step:
//!
//! ```text
//! application key -> partition -> strategy -> assignment
//!    KeySpace        Partition    Strategy    Assignment
//! ```
//!
//! # Example: place, change, compare
//!
//! ```
//! use divvy_core::{Partitions, Rendezvous, Strategy, Workers};
//!
//! let partitions = Partitions::shards([("orders", 64)])?;
//! let strategy = Rendezvous::new();
//! let before = strategy.assign(&Workers::numbered("worker", 4)?, &partitions, None)?;
//! let after = strategy.assign(&Workers::numbered("worker", 5)?, &partitions, Some(&before))?;
//!
//! // The new worker only gains, the others only lose to it.
//! let moves = after.moves_from(&before);
//! assert!(moves.iter().all(|change| change.to.as_deref() == Some("worker-4")));
//! assert_eq!(after.affinity(&before), 1.0 - moves.len() as f64 / 64.0);
//! # Ok::<(), divvy_core::Error>(())
//! ```
//!
//! # Which strategy
//!
//! | strategy | promises | does not |
//! | --- | --- | --- |
//! | [`Rendezvous`] | shares in proportion to weights; only what must moves | even counts |
//! | [`Balanced`] | exact shares by count; the fewest moves from the previous assignment | look at partition weights |
//! | [`WeightedConsistentHash`] | loads by partition weight inside a band; few moves from the previous assignment | the fewest moves |
//! | [`Zoned`] | the same over zones first, by count or by weight | copies in several zones |
//! | [`FilteredRendezvous`] | rendezvous for more than 10,000 workers; only what must moves | [`Rendezvous`]' placement |
//! | [`ConsistentHash`] | fast lookups among many workers; only what must moves | even shares |
//! | [`RoundRobin`] | counts even to ±1 | keep anything in place |
//!
//! # Where to go next
//!
//! | you want | read |
//! | --- | --- |
//! | a partition for a key | [`KeySpace`] |
//! | names, weights, zones and health of what is brought together | [`Partitions`], [`Workers`] |
//! | who owns what, how evenly, and what has moved | [`Assignment`], [`Balance`], [`Moves`] |
//! | a plan with its reasons, and proof how good it is | [`Strategy::propose`], [`Proposal`], [`Certificate`] |
//! | why a partition is where it is | [`Strategy::explain`], [`Explanation`] |
//! | a strategy by its name and options | [`StrategySettings`] |
//! | joins and leaves without starting over | [`LiveRendezvous`] |
//! | planning on indices instead of names | [`plan`] |
//! | one owner for each partition, agreed on by processes | [`leader`], [`lease`] |
//! | what a store has to do for that | [`store`] |
//!
//! # What is promised
//!
//! Placement is pinned: hashes, scores and ties are the same on every platform
//! and in every release, in whatever order workers and partitions come. The
//! machines in [`leader`] and [`lease`], their events, actions and records, are made for
//! the drivers in `divvy` and may change with every release of this crate.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `parallel` | `Rendezvous::parallel()`: the same placement, computed on all cores |
//! | `simulation` | mistakes to plant in members, for divvy's own simulator; nothing to hold on to |

mod assignment;
mod control;
mod error;
mod explain;
pub mod hash;
mod key;
pub mod leader;
pub mod lease;
mod logarithm;
mod moment;
mod moves;
mod name;
mod operations;
mod partition;
pub mod plan;
mod proposal;
mod random;
mod simd;
mod spelled;
pub mod store;
mod strategy;
mod timers;
mod worker;

pub use assignment::{
    ASSIGNMENT_FORMAT, Assignment, AssignmentDocument, Balance, Move, Moves, WorkerLoad,
};
pub use control::{CONTROL_BYTES_MAX, Control};
pub use error::{Error, Invalid};
pub use explain::{Explanation, LoadsAt, Ranked};
pub use key::{
    DJB2_JS_PARTITIONS_MAX, DJB2_JS_PARTITIONS_MIN, KEY_PARTITIONS_DEFAULT, KeyPlace, KeyScheme,
    KeySpace,
};
pub use moment::Moment;
pub use moves::{Considered, MOVE_BYTES_MAX, MOVES_BYTES_MAX, MOVES_MAX, MoveEntry};
pub use partition::{
    PARTITION_WEIGHT_DEFAULT, PARTITIONS_BYTES_MAX, PARTITIONS_MAX, Partition, Partitions,
    SEGMENT_BYTES_MAX, SEGMENTS_MAX,
};
pub use plan::{Cause, Certificate, Reason};
pub use proposal::{Change, PlanDocument, Proposal, Rejected};
pub use spelled::Spelled;
pub use strategy::{
    Balanced, CRUSTER_WEIGHT_MAX, ConsistentHash, EXTREME_THRESHOLD_DEFAULT, EXTREME_THRESHOLD_MAX,
    EXTREME_THRESHOLD_MIN, FilteredRendezvous, LiveRendezvous, OVERLOAD_THRESHOLD_DEFAULT,
    OVERLOAD_THRESHOLD_MAX, OVERLOAD_THRESHOLD_MIN, RING_POINTS_MAX, Rendezvous, Ring, RoundRobin,
    Scheme, SchemeName, Strategy, StrategyName, StrategyOptions, StrategySettings,
    VIRTUAL_NODES_DEFAULT, VIRTUAL_NODES_MAX, WeightedConsistentHash, Zoned,
};
pub use worker::{
    Health, Veto, WORKER_NAME_BYTES_MAX, WORKER_WEIGHT_DEFAULT, WORKER_WEIGHT_MAX,
    WORKER_WEIGHT_MIN, WORKERS_MAX, Worker, Workers,
};

/// The README's program is compiled and run as a test of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
