//! The NATS store against real servers.

mod admin;
mod bed;
mod bucket;
mod capacity;
mod careless;
mod cluster;
mod conformance;
mod connecting;
mod counting;
mod credentials;
mod deletion;
mod disk;
mod faults;
mod fence;
mod permissions;
mod secrets;
mod source;
mod versions;
mod watching;
