//! What a member does: everything that the machine asks of its driver.

use std::fmt;
use std::time::Duration;

use crate::leader::{HookId, OperationId};
use crate::moment::Moment;
use crate::store::{Claim, Heartbeat, LeaseKey, Nonce, Token};

/// One tenure of a lease in this process: from its grant until its partition
/// has stopped. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenureId(pub u64);

/// Something to do. Drivers do it and nothing else: whatever follows from its
/// outcome is the machine's to decide.
#[derive(Debug, Clone)]
pub enum Action {
    /// Carry out an operation on the store, within `timeout`, and hand back a
    /// [`Reply`](super::Reply). Operations may overtake each other.
    Store {
        /// Which operation this is.
        id: OperationId,
        /// What to do.
        operation: Operation,
        /// How long to wait for it.
        timeout: Duration,
    },
    /// Call the start hook. From now on the partition counts as running, and
    /// its grant is current until [`Action::Deadline`] says otherwise.
    StartPartition {
        /// Which call this is.
        id: HookId,
        /// The tenure that it runs under.
        tenure: TenureId,
        /// What to start.
        key: LeaseKey,
        /// The token to hand to every resource.
        token: Token,
        /// When its grant ends, as things stand.
        until: Moment,
    },
    /// Call the stop hook.
    StopPartition {
        /// Which call this is.
        id: HookId,
        /// The tenure that it ran under.
        tenure: TenureId,
        /// What to stop.
        key: LeaseKey,
        /// Why.
        reason: StopReason,
        /// When it must have stopped; beyond it the policy for overdue hooks
        /// takes over.
        deadline: Moment,
    },
    /// The grants of these tenures are current until this moment and not at
    /// it. Nothing ends them, for good.
    Deadline {
        /// Which.
        tenures: Vec<TenureId>,
        /// Until when.
        until: Option<Moment>,
    },
    /// A hook has outlasted its bound beyond what policy allows, with its
    /// partition perhaps still running: end the process.
    Abort(String),
    /// For people and programs that look on.
    Report(Report),
    /// The member has ended, and wants nothing any more.
    Ended(Ending),
}

/// An operation on the store, in the words of its contract.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Take the worker's name.
    OpenSession {
        /// For this session.
        session: Nonce,
        /// For so long.
        ttl: Duration,
    },
    /// A heartbeat.
    Beat(Box<Heartbeat>),
    /// End a session and its membership.
    Leave {
        /// Which.
        session: Nonce,
    },
    /// Read the live workers of the cluster, and what operators wish.
    Members,
    /// Read the documents of all groups.
    Groups,
    /// Read who holds these leases.
    Holders(Vec<LeaseKey>),
    /// Read which of these were moved lately.
    Cooling(Vec<LeaseKey>),
    /// Take leases that nobody holds.
    Acquire {
        /// Which.
        claims: Vec<Claim>,
        /// For so long.
        ttl: Duration,
    },
    /// Let leases run on.
    Renew {
        /// Which.
        claims: Vec<Claim>,
        /// For so long.
        ttl: Duration,
    },
    /// End leases.
    Release {
        /// Which.
        claims: Vec<Claim>,
    },
    /// Mark partitions as moved.
    MarkMoved {
        /// Which.
        keys: Vec<LeaseKey>,
        /// For so long.
        cooldown: Duration,
    },
    /// Add lines to the log of moves. For people: nothing depends on it.
    LogMoves(Vec<String>),
}

/// Why a partition stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// Another worker should have it.
    Shed,
    /// Its lease was somebody else's or gone when it was to be renewed.
    Lost,
    /// Its lease could not be renewed in time.
    Unrenewed,
    /// It is no longer part of a group that this worker serves.
    Unwanted,
    /// This worker is unhealthy, or weighs nothing.
    Unhealthy,
    /// An operator has drained this worker.
    Drained,
    /// This worker stops.
    Shutdown,
}

impl StopReason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Shed,
        Self::Lost,
        Self::Unrenewed,
        Self::Unwanted,
        Self::Unhealthy,
        Self::Drained,
        Self::Shutdown,
    ];

    /// Its name in metrics and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shed => "shed",
            Self::Lost => "lost",
            Self::Unrenewed => "unrenewed",
            Self::Unwanted => "unwanted",
            Self::Unhealthy => "unhealthy",
            Self::Drained => "drained",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a member ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to, and everything has stopped and is given back.
    InOrder,
    /// It was asked to, and something did not stop within `shutdown_timeout`:
    /// its lease has to run out.
    Late,
    /// Another process has its name, and keeps it.
    NameTaken,
    /// The store cannot be used; why, in words.
    Unfit(Box<str>),
}

/// Something worth knowing. None of it has to be acted on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Report {
    /// The worker's name is taken, and it is a live member.
    Joined,
    /// The session is over; why, in words.
    SessionEnded(Box<str>),
    /// The live workers changed.
    Members(Vec<Box<str>>),
    /// The groups changed: each with its number of partitions.
    Groups(Vec<(Box<str>, u32)>),
    /// A lease was granted.
    Acquired {
        /// Which.
        key: LeaseKey,
        /// Its token.
        token: Token,
        /// Whether this worker is the one that should have it.
        desired: bool,
    },
    /// A partition has stopped, and its lease is given back or over.
    Ended {
        /// Which.
        key: LeaseKey,
        /// Why.
        reason: StopReason,
    },
    /// A start hook failed; the lease is given back.
    StartFailed(LeaseKey),
    /// The store fails: nothing is taken or shed for so long.
    Backoff(Duration),
    /// The store works again.
    Recovered,
    /// The store grants nothing for so long, because it restarted or lost its
    /// data, and a lease that it forgot may still be in use.
    Quarantined(Duration),
    /// Something failed and will be tried again, or needs a person.
    Problem(Box<str>),
}
