//! Subscriptions on a real server.

mod bed;
mod concurrent;
mod faults;
mod handover;
mod letters;
mod ordered;
mod refusals;
mod repair;
mod worker;
