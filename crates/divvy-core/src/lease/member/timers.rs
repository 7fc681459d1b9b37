//! Everything that a member waits for.

use crate::timers::Awaited;

/// What is waited for. Of two at one moment, the one that takes authority
/// away comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// A grant ends.
    Expire,
    /// A partition has to stop, because its lease was not renewed.
    Drain,
    /// The next renewal of leases.
    Renew,
    /// The next heartbeat.
    Beat,
    /// The next try to take the worker's name.
    Open,
    /// The next look at everything.
    Reconcile,
    /// The next reading of groups.
    Config,
    /// A lease that is not renewed may be over.
    Lapse,
    /// Something may be taken now.
    Take,
    /// Giving back what has stopped.
    Gather,
    /// Giving back what could not be given back.
    Release,
    /// A hook may be overdue.
    Hooks,
    /// The time for stopping is over.
    Shutdown,
    /// An operation was never answered.
    Lost,
}

impl Awaited for Timer {
    const ALL: &'static [Self] = &[
        Self::Expire,
        Self::Drain,
        Self::Renew,
        Self::Beat,
        Self::Open,
        Self::Reconcile,
        Self::Config,
        Self::Lapse,
        Self::Take,
        Self::Gather,
        Self::Release,
        Self::Hooks,
        Self::Shutdown,
        Self::Lost,
    ];

    fn place(self) -> usize {
        self as usize
    }
}
