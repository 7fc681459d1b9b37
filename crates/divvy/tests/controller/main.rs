//! Controllers on every lease store, with real servers where a store has one.

mod bed;
mod consumers;
mod groups;
mod ledger;
mod many;
mod mixed;
mod redis;
mod sharing;
mod turns;
