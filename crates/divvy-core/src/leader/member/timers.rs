//! Everything that a member waits for.

use crate::timers::Awaited;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// Authority ends.
    Expire,
    /// Work begins to stop, because the lease was not renewed.
    Drain,
    /// The next renewal.
    Renew,
    /// The next step of claiming an id.
    Claim,
    /// Taking the lead.
    Take,
    /// The next renewal of the lead.
    Beat,
    /// Reading what no watch told.
    Poll,
    /// A worker's lease may be over.
    Fence,
    /// The next look at what the root should be.
    Round,
    /// Reading, or writing again, the root.
    Root,
    /// Asking the source of partitions.
    Source,
    /// Deleting chunks.
    Garbage,
    /// A hook may be overdue.
    Hooks,
    /// Starting again what failed to start.
    Restart,
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
        Self::Claim,
        Self::Take,
        Self::Beat,
        Self::Poll,
        Self::Fence,
        Self::Round,
        Self::Root,
        Self::Source,
        Self::Garbage,
        Self::Hooks,
        Self::Restart,
        Self::Shutdown,
        Self::Lost,
    ];

    fn place(self) -> usize {
        self as usize
    }
}
