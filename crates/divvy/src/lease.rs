//! The words of lease mode: what there is to own, how long leases last, why a
//! partition stops, and why it is not where it should be.
//!
//! [`Controller`](crate::controller::Controller) uses them. The machine behind it,
//! for drivers of one's own, is `divvy_core::lease`.
//!
//! ```
//! use divvy::lease::Group;
//!
//! let group = Group::new("orders", 64)?.with_max_per_worker(20);
//! assert_eq!((group.partitions(), group.max_per_worker()), (64, Some(20)));
//! # Ok::<(), divvy::Invalid>(())
//! ```

pub use divvy_core::lease::{
    Explained, GROUP_BYTES_MAX, GROUPS_MAX, Group, LEASE_TIMING_MAX, LEASE_TTL_MIN, LeaseSettings,
    Misaligned, Misalignment, PARTITIONS_MAX, StopReason, TenureId,
};
