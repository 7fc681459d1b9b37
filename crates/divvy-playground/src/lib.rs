//! A divvy cluster to break: the machines of both modes in a simulated world
//! that is watched, changed and explained.
//!
//! The [`Engine`] has the world and knows no sockets; [`Scenario`]s do things
//! to it and judge what becomes of it; the [`Playground`] lets its time pass
//! and serves the page and the interface behind it. It also shows a live cluster,
//! which is only looked at, or starts one of its own on a real store, whose
//! members are processes ([`be_member`]).
//!
//! ```
//! use divvy_playground::{Engine, builtin};
//!
//! let scenario = builtin("half-the-fleet-dies").expect("it is built in");
//! let outcome = Engine::run_scenario(scenario)?;
//! assert!(outcome.passed);
//! assert_eq!(outcome.violations, 0);
//! # Ok::<(), divvy_core::Invalid>(())
//! ```

mod action;
mod audience;
mod compass;
pub mod document;
mod engine;
mod feed;
mod fields;
mod gauge;
mod live;
mod member;
mod page;
mod playground;
mod real;
mod scenario;
mod server;
mod setup;
mod shown;
mod stage;
mod timeline;

pub use action::Action;
pub use engine::{
    Answer, Engine, Gain, MoveDocument, News, PartitionDocument, Refusal, WhatIf, WorkerDocument,
};
pub use feed::{Follower, Message};
pub use member::be_member;
pub use playground::Playground;
pub use real::{Crew, Ground, REAL_WORKERS_MAX};
pub use scenario::{Listed, Outcome, SCENARIO_BYTES_MAX, Scenario, builtin, builtins};
pub use server::listen;
pub use setup::{PARTITIONS_MAX, PLACES_MAX, SEED_MAX, Setup, WORKERS_MAX, presets, strategies};
