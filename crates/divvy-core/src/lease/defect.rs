//! Mistakes that can be planted, to test what tests the machine.

/// A mistake in one line of the machine. Only tests and the simulator make
/// members with one; each must be caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// A lease that has this worker's name is taken for its own.
    AdoptForeign,
    /// A wish for a lease that was not answered is forgotten, and started
    /// later by a lease that somebody else may have.
    AssumeGranted,
    /// The deadline counts from the reply and not from the sending.
    DeadlineFromReply,
    /// Grants allow for no clock drift, and end when the lease does.
    NoDrift,
    /// Work goes on after the deadline.
    NoSelfFence,
    /// A lease is given back before its partition has stopped.
    ReleaseBeforeStop,
    /// A renewal that was refused is taken as done.
    RenewOverLoss,
    /// Renewals pause while a partition stops.
    RenewNotWhileStopping,
    /// A partition starts again while it still stops.
    StartBeforeStopped,
    /// A partition whose lease was lost is not stopped.
    StopNotCalled,
    /// What nobody takes is left alone by all who are not first.
    NeverStandIn,
    /// Whoever has no room left is still waited for.
    IgnoreRoom,
    /// What another worker does not serve is still left to it.
    IgnoreServed,
    /// A partition is given up although its new owner does not come, again
    /// and again.
    ShedInVain,
    /// Partitions of a group that is gone run on.
    KeepUnwanted,
    /// A member ends while hooks still run.
    LeaveBeforeStop,
    /// Backoff, once begun, never ends.
    BackoffForever,
    /// A failed start keeps its lease.
    KeepFailedStart,
    /// A grant whose answer came so late that it is over, or about to be, is
    /// started all the same.
    StartLate,
    /// A lease that was granted after this worker was asked to stop is started.
    StartWhileStopping,
    /// After one failed renewal a lease is not renewed any more.
    RenewOnce,
    /// Of many leases only the first batch is renewed.
    RenewFirstBatch,
    /// A partition is given up although it has become this worker's while it
    /// was asked whether it may move.
    ShedOwn,
    /// A lease that is known to be lost keeps its grant until that ends by
    /// itself.
    KeepLostGrant,
    /// A partition is given up before it has run for as long as it has to.
    ShedEarly,
    /// A store that forgot is waited for as long as the own lease lasts, not
    /// the longest one.
    QuarantineByOwnLease,
    /// A listing of workers or of holders with one entry that cannot be read is
    /// given up as a whole.
    GiveUpListing,
}

impl Defect {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::AdoptForeign,
        Self::AssumeGranted,
        Self::DeadlineFromReply,
        Self::NoDrift,
        Self::NoSelfFence,
        Self::ReleaseBeforeStop,
        Self::RenewOverLoss,
        Self::RenewNotWhileStopping,
        Self::StartBeforeStopped,
        Self::StopNotCalled,
        Self::NeverStandIn,
        Self::IgnoreRoom,
        Self::IgnoreServed,
        Self::ShedInVain,
        Self::KeepUnwanted,
        Self::LeaveBeforeStop,
        Self::BackoffForever,
        Self::KeepFailedStart,
        Self::StartLate,
        Self::StartWhileStopping,
        Self::RenewOnce,
        Self::RenewFirstBatch,
        Self::ShedOwn,
        Self::KeepLostGrant,
        Self::ShedEarly,
        Self::QuarantineByOwnLease,
        Self::GiveUpListing,
    ];
}
