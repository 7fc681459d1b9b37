//! The Redis stores against real servers.

mod access;
mod announcements;
mod bed;
mod capacity;
mod conformance;
mod connecting;
mod doctor;
mod encryption;
mod faults;
mod fence;
mod hostile;
mod incarnation;
mod layout;
mod log;
mod moves;
mod observed;
mod persistence;
mod raw;
mod scripts;
mod secrets;
