//! Lease mode: how workers of a cluster divide partitions among them without a
//! leader, by one lease for each in a store that lets leases expire, as a pure
//! machine.
//!
//! ```text
//!           events, clock                        actions, next wake-up
//! driver ------------------>  Member (decides)  ------------------> driver
//! ```
//!
//! Every worker ranks all live workers for every partition by weighted
//! rendezvous, so all agree without talking. Whoever is first takes the lease,
//! if nobody holds it; nobody ever takes one away. What rests on agreement is
//! only how soon everything is where it should be: that a partition has one
//! owner rests on the lease alone.

mod action;
#[cfg_attr(not(feature = "simulation"), allow(dead_code, unreachable_pub))]
mod defect;
mod event;
mod group;
mod hashes;
mod member;
mod settings;

pub use action::{Action, Ending, Operation, Report, StopReason, TenureId};
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub use defect::Defect;
pub use event::{Event, Reply, SelfDescription};
pub use group::{GROUP_BYTES_MAX, GROUPS_MAX, Group, PARTITIONS_MAX};
pub use hashes::Hashes;
pub use member::{
    Batches, Explained, Held, Member, MemberSetup, Misaligned, Misalignment, Outlook,
};
pub use settings::{LEASE_TIMING_MAX, LEASE_TTL_MIN, LeaseSettings};
