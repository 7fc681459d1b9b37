//! A world in which everything goes wrong, to find out whether divvy's
//! coordination holds.
//!
//! A [`World`] is many members, each the machine that runs in production, over
//! a store, clocks, links, hooks and a source of partitions that fail in every
//! way that the protocol allows for. A seed decides all of it: the same seed is
//! the same world, event for event. What must hold is in [`Invariants`], one
//! file each, and is checked after every step. A [`LeaseWorld`] is the same for
//! lease mode.
//!
//! ```
//! use divvy_sim::{Profile, World};
//!
//! let mut world = World::new(Profile::of_seed(7), false);
//! world.run().expect("no invariant is broken");
//! assert!(world.tally().events > 0);
//! ```

mod campaign;
mod clock;
mod coverage;
mod defects;
mod dice;
mod fact;
mod fault;
pub mod figures;
mod hands;
mod history;
mod invariants;
mod leader;
mod lease;
mod ledger;
mod mode;
mod profile;
mod queue;
mod resource;
mod search;
mod time;
mod totals;
mod trial;
mod world;

pub use campaign::{Campaign, Goal, Report};
pub use clock::{MemberClock, RATE_ERROR_MAX_PPM};
pub use coverage::{Coverage, Mishap};
pub use defects::{Defect, Hunt, hunt};
pub use dice::Dice;
pub use fact::{Disturbed, Fact, LeaseWish, Phase, Seen, Survey};
pub use fault::{Fault, FaultKind, HookWeather, Isolation, SourceFault, Weather};
pub use hands::{
    Deed, Done, Hands, Newcomer, Place, PlaceState, Room, StoreState, StoreView, TRACE_LINES_MAX,
};
pub use history::{Answer, Attempt, Happened, History};
pub use invariants::{
    Bounds, Broken, Invariants, LeaseInvariants, OwnershipInvariants, RecordedInvariants,
};
pub use leader::{LeaderMode, World};
pub use lease::{
    GroupPlan, LeaseFault, LeaseFaultKind, LeaseMode, LeasePreset, LeaseProfile, LeaseWorld,
    PlacePlan, SpoiltKey, Tuning, WorkerLimits,
};
pub use ledger::{Known, Ledger};
pub use mode::Mode;
pub use profile::{Election, Preset, Profile};
pub use resource::{Resource, Verdict};
pub use search::{Search, Searched};
pub use time::TrueTime;
pub use totals::Totals;
pub use trial::{Failure, Outcome, Trial};
pub use world::{DriverDefect, DriverPlan, Life, Observation, Observed, Tally, WorldOf};

/// The README's program is compiled and run as a test of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
