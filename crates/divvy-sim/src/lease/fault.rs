//! Faults of worlds in lease mode.

use std::fmt;
use std::time::Duration;

use super::profile::WorkerLimits;
use crate::fault::{HookWeather, Isolation, Weather};
use crate::time::TrueTime;

/// One fault of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseFault {
    /// When it begins.
    pub at: TrueTime,
    /// How long it lasts, where it does.
    pub lasts: Duration,
    /// What it is.
    pub kind: LeaseFaultKind,
}

/// What is done. Members, groups and leases are named by a number, modulo how
/// many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LeaseFaultKind {
    /// The process ends, and is started again when the fault is over.
    Crash(usize),
    /// This part of all processes ends at once.
    MassRestart(f64),
    /// The process stands still.
    Pause(usize),
    /// The machine sleeps, and its connections with it.
    Suspend(usize),
    /// The member is cut off.
    Isolate(usize, Isolation),
    /// The member stops, and is started again when the fault is over.
    Leave(usize),
    /// The same, and soon.
    Return(usize),
    /// The member stops as soon as it has asked for leases, before it knows
    /// whether it has them.
    LeaveAsking(usize),
    /// Another member joins.
    Join,
    /// All members are restarted, one after another.
    RollingRestart,
    /// A second process is started with the name of a member.
    Namesake(usize),
    /// The store does nothing.
    Stall,
    /// The store refuses whatever it is asked.
    Refuse,
    /// The store is restarted, which takes as long as the fault, and comes back
    /// with what it had.
    Restart,
    /// The same, with what it had so long before, or with nothing.
    RestartBehind(Option<Duration>),
    /// The store throws everything away and goes on.
    Empty,
    /// The store's clock is set by so many milliseconds.
    ClockStep(i64),
    /// The wall clock of a member is set by so many milliseconds.
    WallStep(usize, i64),
    /// The wall clock of the store is set by so many milliseconds, and not the
    /// one by which leases expire.
    StoreWallStep(i64),
    /// The store throws so many keys away.
    Evict(usize),
    /// The store forgets its scripts: the next use of one fails, once for each
    /// member.
    ScriptFlush,
    /// Rates at which single operations and notices go wrong.
    Weather(Weather),
    /// Rates at which hooks go wrong.
    Hooks(HookWeather),
    /// A member gets no notices, and knows of it when it gets them again.
    Gap(usize),
    /// A stranger takes a lease that nobody has.
    ForeignTake(usize),
    /// A stranger deletes a lease that somebody has.
    ForeignDelete(usize),
    /// A stranger writes itself over the holder of a lease.
    ForeignOverwrite(usize),
    /// A stranger says that it is a live worker, and takes nothing.
    ForeignMember(usize),
    /// Another program writes over a key, and somebody deletes it when the fault
    /// is over. Only what the key belongs to may suffer, and not after that.
    Spoil(usize, SpoiltKey),
    /// The same, and nobody deletes it before the end of the world.
    SpoilForGood(usize, SpoiltKey),
    /// The document of a group is no document.
    Garble(usize),
    /// A group gets so many partitions more (above 0) or less.
    Resize(usize, i32),
    /// A group gets another limit for each worker.
    Limit(usize, u32),
    /// A group is not there.
    RemoveGroup(usize),
    /// An application asks for a look at everything.
    Refresh(usize),
    /// A worker is not well.
    Unhealthy(usize),
    /// A worker gets this weight.
    Weight(usize, f64),
    /// The settings of a worker are changed and read again, with these limits:
    /// higher or lower than before.
    Reload(usize, WorkerLimits),
    /// Operators wish that a worker takes nothing more.
    Cordon(usize),
    /// Operators wish that a worker gives up everything.
    Drain(usize),
    /// Operators wish that a partition is with a worker.
    Pin(usize, usize),
    /// What operators wish cannot be read.
    GarbleWishes,
}

/// A key that another program writes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpoiltKey {
    /// A lease: its holder cannot be read, and it never expires.
    Lease,
    /// A lease that never expires, until its holder renews it.
    Expiry,
    /// The last token of a lease.
    Token,
    /// The mark of a move, which never expires.
    Mark,
    /// The session of a member.
    Session,
    /// What a member says of itself.
    Info,
    /// A worker that is not there and never ceases to be alive.
    Ghost,
}

impl LeaseFaultKind {
    /// Whether members still reach the store, and come and go only in order.
    pub const fn is_calm(&self) -> bool {
        matches!(
            self,
            Self::Hooks(_)
                | Self::Join
                | Self::Leave(_)
                | Self::Return(_)
                | Self::LeaveAsking(_)
                | Self::RollingRestart
                | Self::Gap(_)
                | Self::Garble(_)
                | Self::Resize(..)
                | Self::Limit(..)
                | Self::RemoveGroup(_)
                | Self::Refresh(_)
                | Self::Unhealthy(_)
                | Self::Weight(..)
                | Self::Reload(..)
                | Self::Cordon(_)
                | Self::Drain(_)
                | Self::Pin(..)
                | Self::GarbleWishes
                | Self::WallStep(..)
                | Self::StoreWallStep(_)
        )
    }

    /// Whether the store loses what it knew, tokens included.
    pub const fn forgets(&self) -> bool {
        matches!(
            self,
            Self::Empty
                | Self::RestartBehind(_)
                | Self::Evict(_)
                | Self::Spoil(_, SpoiltKey::Token)
                | Self::SpoilForGood(_, SpoiltKey::Token)
        )
    }
}

impl fmt::Display for LeaseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.lasts.as_secs_f64();
        match self.kind {
            LeaseFaultKind::Weather(weather) => {
                write!(f, "weather for {seconds:.3} s: {weather:?}")
            }
            LeaseFaultKind::Hooks(weather) => write!(f, "hooks for {seconds:.3} s: {weather:?}"),
            kind => write!(f, "{kind:?} for {seconds:.3} s"),
        }
    }
}
