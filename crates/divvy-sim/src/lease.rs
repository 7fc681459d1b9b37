//! Worlds of lease mode: members, each the machine that runs in production,
//! over a lease store with its own clock that fails in every way that the
//! protocol allows for, and in some that it does not.

mod act;
mod arrive;
mod boot;
mod course;
mod draw;
mod fault;
mod foreign;
mod groups;
mod hands;
mod network;
mod phase;
mod process;
mod profile;
mod store;
mod strike;
mod trace;
mod wishes;
mod world;

pub use fault::{LeaseFault, LeaseFaultKind};
pub use profile::{GroupPlan, LeasePreset, LeaseProfile, PlacePlan};
pub use world::LeaseWorld;
