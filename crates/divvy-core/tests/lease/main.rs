//! Lease mode's machine, step by step in time that is handed in.

mod cluster;
mod guide;
mod limits;
mod movement;
mod outage;
mod ownership;
mod quarantine;
mod session;
#[cfg(feature = "simulation")]
mod spoilt;
mod wishes;
