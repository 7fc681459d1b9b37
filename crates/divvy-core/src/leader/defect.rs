//! Mistakes that can be planted, to test what tests the machine.

/// A mistake in one line of the machine. Only tests and the simulator make
/// members with one; each must be caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// What is not named as stopping is acknowledged too, where it is too much
    /// to be named.
    AckBeyondNames,
    /// An older root is adopted over a newer one.
    AdoptOlderRoot,
    /// An id is claimed although its session may be alive.
    ClaimWithoutObserving,
    /// An id is claimed again while stop hooks of its ended session still run.
    ClaimWhileStopping,
    /// The deadline counts from the reply and not from the sending.
    DeadlineFromReply,
    /// A grant is made although the loser has not acknowledged.
    GrantWithoutAck,
    /// A grant is made to a session that has only claimed.
    GrantOnFirstBeat,
    /// A worker is taken as gone as soon as it is late.
    FenceEarly,
    /// A record that was lost is replaced by one that says its session ended.
    FenceMissing,
    /// A worker is taken as gone without its record saying so.
    FenceWithoutCompare,
    /// A partition that the source no longer names leaves the root at once.
    ForgetDropped,
    /// Work that stopped at the deadline is never taken up again.
    ForgetToRestart,
    /// Windows hold back the partitions of a crashed worker.
    HoldCrashed,
    /// A store that forgot is trusted.
    IgnoreAmnesia,
    /// Whether a record is older than the grant is not looked at.
    IgnoreSeen,
    /// What a worker cannot start stays with it.
    KeepUnstartable,
    /// A session keeps its grants by a root that does not name it.
    KeepUnnamed,
    /// The member says that it left while hooks still run.
    LeaveBeforeStop,
    /// An unowned partition is left out of the root.
    LoseUnowned,
    /// Waits allow for no clock drift, and are a little short.
    NoDrift,
    /// Work goes on after the deadline.
    NoSelfFence,
    /// What hashing prefers is moved although nothing changed.
    MoveForNothing,
    /// A partition moves from one worker to another in one root.
    MoveInOneWrite,
    /// The wait of a second quarantine counts from the first.
    QuarantineFromFirst,
    /// The quarantine ends at once.
    QuarantineWithoutWait,
    /// Work whose lease had ended is taken up again on a renewal alone.
    RegainOnRenewal,
    /// A revocation is acknowledged before the stop hook has returned.
    ReleaseBeforeStop,
    /// A renewal overwrites whatever is there.
    RenewOverForeign,
    /// A root that lost against another is written over it.
    ResendRoot,
    /// A start hook that outlives its session counts as that of the next grant.
    ReuseOldStart,
    /// A partition starts again while it still stops.
    StartBeforeStopped,
    /// Of a listing with one record that cannot be read, none is.
    StopAtScribble,
    /// A session that ended leaves its partitions running.
    StopNotCalled,
    /// Tokens come from the wall clock.
    TokenFromClock,
    /// Answers count, and writes are sent, whatever the life of the store.
    TrustEveryLife,
    /// What is no record is taken for the end of whoever wrote there before.
    TrustScribbles,
    /// A root keeps the number of the one before.
    VersionReused,
    /// An alarm is withdrawn by any root of a later epoch.
    WithdrawAlarm,
}

impl Defect {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::AckBeyondNames,
        Self::AdoptOlderRoot,
        Self::ClaimWithoutObserving,
        Self::ClaimWhileStopping,
        Self::DeadlineFromReply,
        Self::GrantWithoutAck,
        Self::GrantOnFirstBeat,
        Self::FenceEarly,
        Self::FenceMissing,
        Self::FenceWithoutCompare,
        Self::ForgetDropped,
        Self::ForgetToRestart,
        Self::HoldCrashed,
        Self::IgnoreAmnesia,
        Self::IgnoreSeen,
        Self::KeepUnstartable,
        Self::KeepUnnamed,
        Self::LeaveBeforeStop,
        Self::LoseUnowned,
        Self::NoDrift,
        Self::NoSelfFence,
        Self::MoveForNothing,
        Self::MoveInOneWrite,
        Self::QuarantineFromFirst,
        Self::QuarantineWithoutWait,
        Self::RegainOnRenewal,
        Self::ReleaseBeforeStop,
        Self::RenewOverForeign,
        Self::ResendRoot,
        Self::ReuseOldStart,
        Self::StartBeforeStopped,
        Self::StopAtScribble,
        Self::StopNotCalled,
        Self::TokenFromClock,
        Self::TrustEveryLife,
        Self::TrustScribbles,
        Self::VersionReused,
        Self::WithdrawAlarm,
    ];
}
